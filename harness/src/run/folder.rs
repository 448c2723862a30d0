//! The folder of a run: `env.json`, `experiment.toml`, `plan.json`, `records.jsonl`, `summary.json`; that of a
//! verification has `behaviour.json` in place of definition and summary.
//!
//! Records are appended one by one and reach the disk before the next trial starts, so a kill at any moment loses no
//! finished trial. A last line that was cut off is dropped when the run is resumed. A folder belongs to one run, and
//! one heaplab at a time writes into it.

use crate::plan::Plan;
use crate::record::TrialRecord;
use crate::trial::SCHEMA;
use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::HashSet;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Something about the folder is wrong; the text says what, and what to do.
#[derive(Debug)]
pub struct FolderError {
    /// The whole message.
    pub message: String,
    /// The folder's contents are not what they should be (bad input), as against a disk that refuses.
    pub bad_input: bool,
}

impl fmt::Display for FolderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
impl std::error::Error for FolderError {}

/// A file that is missing is bad input; anything else is the system refusing.
fn refused(what: &str, path: &Path, why: &io::Error) -> FolderError {
    FolderError {
        message: format!("cannot {what} {}: {why}", path.display()),
        bad_input: what == "read" && why.kind() == io::ErrorKind::NotFound,
    }
}

fn wrong(message: String) -> FolderError {
    FolderError {
        message,
        bad_input: true,
    }
}

const RECORDS: &str = "records.jsonl";
/// What a run writes. A folder that holds any of these is not made anew.
const FILES: [&str; 6] = [
    "behaviour.json",
    "env.json",
    "experiment.toml",
    "plan.json",
    RECORDS,
    "summary.json",
];

/// So long a lock that is taken is asked for again.
const PATIENCE: Duration = Duration::from_secs(2);

/// A run's folder.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

fn taken(path: &Path) -> FolderError {
    wrong(format!(
        "{} already holds a run, a verification, or part of one: name another folder (heaplab run --resume {0} goes on \
         with a run)",
        path.display()
    ))
}

/// Whether the lock on `file` was had. A child that a killed run had begun to start holds its lock until it is gone,
/// which is at once, but later than the run itself: so a lock that is taken is asked for again.
fn locked(file: &File) -> bool {
    let until = Instant::now() + PATIENCE;
    loop {
        if flock(file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return true;
        }
        if Instant::now() > until {
            return false;
        }
        thread::sleep(PATIENCE / 100);
    }
}

impl Folder {
    /// Looks whether the folder `path` could be one for a new run; it need not exist.
    ///
    /// # Errors
    /// If it holds a run already.
    pub fn vacant(path: &Path) -> Result<(), FolderError> {
        match FILES.iter().any(|file| path.join(file).exists()) {
            true => Err(taken(path)),
            false => Ok(()),
        }
    }

    /// Makes the folder `path` for a new run.
    ///
    /// # Errors
    /// If it holds a run already, or cannot be made.
    pub fn create(path: PathBuf) -> Result<Folder, FolderError> {
        Folder::vacant(&path)?;
        fs::create_dir_all(&path).map_err(|why| refused("make the folder", &path, &why))?;
        // Whoever makes this file owns the folder; a second run that looked at the same moment does not.
        let records = path.join(RECORDS);
        match OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&records)
        {
            Ok(_) => Ok(Folder { path }),
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => Err(taken(&path)),
            Err(why) => Err(refused("write", &records, &why)),
        }
    }

    /// The existing folder `path`.
    ///
    /// # Errors
    /// If it holds no run.
    pub fn open(path: PathBuf) -> Result<Folder, FolderError> {
        if path.join("plan.json").is_file() {
            Ok(Folder { path })
        } else {
            Err(wrong(format!(
                "{} holds no run: there is no plan.json in it",
                path.display()
            )))
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `value` as pretty JSON into the file `name`, whole or not at all.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), FolderError> {
        let mut text =
            serde_json::to_vec_pretty(value).map_err(|why| wrong(format!("{name}: {why}")))?;
        text.push(b'\n');
        self.write(name, &text)
    }

    /// Writes `text` into the file `name`, whole or not at all.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn write(&self, name: &str, text: &[u8]) -> Result<(), FolderError> {
        let (path, half) = (
            self.path.join(name),
            self.path.join(format!(".{name}.part")),
        );
        fs::write(&half, text)
            .and_then(|()| fs::rename(&half, &path))
            .map_err(|why| {
                let _ = fs::remove_file(&half);
                refused("write", &path, &why)
            })
    }

    /// Reads the JSON file `name`.
    ///
    /// # Errors
    /// If it is missing, unreadable or not of its form.
    pub fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<T, FolderError> {
        let path = self.path.join(name);
        let text = fs::read(&path).map_err(|why| refused("read", &path, &why))?;
        serde_json::from_slice(&text).map_err(|why| wrong(format!("{}: {why}", path.display())))
    }

    /// Reads the file `name` as text.
    ///
    /// # Errors
    /// If it is missing or unreadable.
    pub fn read_text(&self, name: &str) -> Result<String, FolderError> {
        let path = self.path.join(name);
        fs::read_to_string(&path).map_err(|why| refused("read", &path, &why))
    }

    /// The plan, refused if a newer heaplab wrote it.
    ///
    /// # Errors
    /// As [`Folder::read_json`].
    pub fn plan(&self) -> Result<Plan, FolderError> {
        let path = self.path.join("plan.json");
        known_schema(
            &self.read_json::<serde_json::Value>("plan.json")?,
            &path.display().to_string(),
        )?;
        self.read_json("plan.json")
    }

    /// Every whole record, in the order written, each of a trial of `plan`.
    ///
    /// # Errors
    /// If a whole line is no record, is of a newer schema, is of no trial of the plan or of one that has a record
    /// already. A cut-off last line is left out.
    pub fn records(&self, plan: &Plan) -> Result<Vec<TrialRecord>, FolderError> {
        let path = self.path.join(RECORDS);
        if !path.exists() {
            return Ok(Vec::new());
        }
        let text = fs::read(&path).map_err(|why| refused("read", &path, &why))?;
        let whole = text
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |last| last + 1);
        let mut seen = HashSet::new();
        let mut records = Vec::new();
        let lines = text[..whole].split(|byte| *byte == b'\n').enumerate();
        for (number, line) in lines.filter(|(_, line)| !line.is_empty()) {
            let place = format!("{}:{}", path.display(), number + 1);
            let not = |why: serde_json::Error| wrong(format!("{place}: not a record: {why}"));
            let value: serde_json::Value = serde_json::from_slice(line).map_err(not)?;
            known_schema(&value, &place)?;
            let record: TrialRecord = serde_json::from_value(value).map_err(not)?;
            if !plan
                .trials
                .get(record.trial as usize)
                .is_some_and(|trial| trial.yields(&record))
            {
                return Err(wrong(format!(
                    "{place}: trial {} of this record is not the one that plan.json has under that number",
                    record.trial
                )));
            }
            if !seen.insert(record.trial) {
                return Err(wrong(format!(
                    "{place}: trial {} has a record already",
                    record.trial
                )));
            }
            records.push(record);
        }
        Ok(records)
    }

    /// Where callgrind writes while a trial runs; removed after it.
    pub fn profile(&self) -> PathBuf {
        self.path.join(".callgrind")
    }

    /// Where strace writes while a trial runs; removed after it.
    pub fn trace(&self) -> PathBuf {
        self.path.join(".strace")
    }

    /// Opens `records.jsonl` for appending, dropping a cut-off last line. As long as the appender lives, no other
    /// heaplab gets one.
    ///
    /// # Errors
    /// If the disk refuses, or another heaplab runs into this folder.
    pub fn appender(&self) -> Result<Appender, FolderError> {
        let path = self.path.join(RECORDS);
        let refuse = |why: io::Error| refused("write", &path, &why);
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .read(true)
            .open(&path)
            .map_err(refuse)?;
        if !locked(&file) {
            return Err(wrong(format!(
                "another heaplab is running into {}: wait for it",
                self.path.display()
            )));
        }
        cut_to_whole_lines(&mut file).map_err(refuse)?;
        Ok(Appender { file, path })
    }
}

fn known_schema(value: &serde_json::Value, place: &str) -> Result<(), FolderError> {
    match value.get("schema").and_then(serde_json::Value::as_u64) {
        Some(schema) if schema <= u64::from(SCHEMA) => Ok(()),
        Some(schema) => Err(wrong(format!(
            "{place}: written by a newer heaplab (schema {schema}; this one reads up to {SCHEMA}): update heaplab"
        ))),
        None => Err(wrong(format!(
            "{place}: has no schema number, so it is not heaplab's"
        ))),
    }
}

fn cut_to_whole_lines(file: &mut File) -> io::Result<()> {
    use std::io::Read;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    let whole = text
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |last| last + 1);
    if whole < text.len() {
        file.set_len(whole as u64)
    } else {
        Ok(())
    }
}

/// Appends records.
#[derive(Debug)]
pub struct Appender {
    file: File,
    path: PathBuf,
}

impl Appender {
    /// Appends one record and sees it onto the disk. A line that only half fits is taken back.
    ///
    /// # Errors
    /// If the disk refuses; all earlier records are intact.
    pub fn append(&mut self, record: &TrialRecord) -> Result<(), FolderError> {
        let mut line =
            serde_json::to_vec(record).map_err(|why| wrong(format!("a record: {why}")))?;
        line.push(b'\n');
        let before = self.file.metadata().map(|meta| meta.len());
        self.file
            .write_all(&line)
            .and_then(|()| self.file.sync_data())
            .map_err(|why| {
                if let Ok(length) = before {
                    let _ = self.file.set_len(length);
                }
                refused("write", &self.path, &why)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_cut_off_line_is_dropped_and_whole_ones_stay() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let folder = Folder::create(dir.path().join("run")).expect("made");
        fs::write(
            folder.path().join("records.jsonl"),
            "{\"schema\":1}\n{\"sch",
        )
        .expect("written");
        drop(folder.appender().expect("opened"));
        assert_eq!(
            folder.read_text("records.jsonl").expect("read"),
            "{\"schema\":1}\n"
        );
    }

    #[test]
    fn a_newer_schema_is_refused_by_its_place() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let folder = Folder::create(dir.path().join("run")).expect("made");
        fs::write(folder.path().join("records.jsonl"), "{\"schema\":99}\n").expect("written");
        let error = folder.records(&no_plan()).expect_err("refused");
        assert!(
            error.bad_input
                && error.message.contains("records.jsonl:1")
                && error.message.contains("newer")
        );
    }

    fn no_plan() -> Plan {
        Plan {
            schema: SCHEMA,
            source_hash: String::new(),
            experiment: String::new(),
            seed: 1,
            quick: false,
            verify: false,
            overrides: Vec::new(),
            libraries: BTreeMap::new(),
            trials: Vec::new(),
        }
    }

    #[test]
    fn one_writer_at_a_time() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let folder = Folder::create(dir.path().join("run")).expect("made");
        let first = folder.appender().expect("the first");
        let refused = folder.appender().expect_err("the second");
        assert!(refused.message.contains("another heaplab"), "{refused}");
        drop(first);
        assert!(folder.appender().is_ok());
    }

    #[test]
    fn a_folder_with_a_part_of_a_run_is_not_adopted() {
        for file in FILES {
            let dir = tempfile::tempdir().expect("a temporary folder");
            fs::write(dir.path().join(file), "").expect("written");
            let error = Folder::create(dir.path().to_owned()).expect_err(file);
            assert!(
                error.bad_input && error.message.contains("--resume"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_folder_is_not_used_twice() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let folder = Folder::create(dir.path().join("run")).expect("made");
        folder.write("plan.json", b"{}").expect("written");
        let error = Folder::create(dir.path().join("run")).expect_err("refused");
        assert!(error.message.contains("--resume"));
    }
}
