//! The folder of a run: `env.json`, `experiment.toml`, `plan.json`, `records.jsonl`, `summary.json`.
//!
//! Records are appended one by one and reach the disk before the next trial starts, so a kill at any moment loses no
//! finished trial. A last line that was cut off is dropped when the run is resumed.

use crate::plan::Plan;
use crate::record::TrialRecord;
use crate::trial::SCHEMA;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

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

fn refused(what: &str, path: &Path, why: &io::Error) -> FolderError {
    FolderError {
        message: format!("cannot {what} {}: {why}", path.display()),
        bad_input: false,
    }
}

fn wrong(message: String) -> FolderError {
    FolderError {
        message,
        bad_input: true,
    }
}

/// A run's folder.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes the folder `path` for a new run.
    ///
    /// # Errors
    /// If it holds a run already, or cannot be made.
    pub fn create(path: PathBuf) -> Result<Folder, FolderError> {
        if path.join("plan.json").exists() {
            return Err(wrong(format!(
                "{} already holds a run: go on with it by --resume {0}, or name another folder",
                path.display()
            )));
        }
        fs::create_dir_all(&path).map_err(|why| refused("make the folder", &path, &why))?;
        Ok(Folder { path })
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

    /// Every whole record, in the order written.
    ///
    /// # Errors
    /// If a whole line is no record, or is of a newer schema. A cut-off last line is left out.
    pub fn records(&self) -> Result<Vec<TrialRecord>, FolderError> {
        let path = self.path.join("records.jsonl");
        if !path.exists() {
            return Ok(Vec::new());
        }
        let text = fs::read(&path).map_err(|why| refused("read", &path, &why))?;
        let whole = text
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |last| last + 1);
        text[..whole]
            .split(|byte| *byte == b'\n')
            .enumerate()
            .filter(|(_, line)| !line.is_empty())
            .map(|(number, line)| {
                let place = format!("{}:{}", path.display(), number + 1);
                let value: serde_json::Value = serde_json::from_slice(line)
                    .map_err(|why| wrong(format!("{place}: not a record: {why}")))?;
                known_schema(&value, &place)?;
                serde_json::from_value(value)
                    .map_err(|why| wrong(format!("{place}: not a record: {why}")))
            })
            .collect()
    }

    /// Opens `records.jsonl` for appending, dropping a cut-off last line.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn appender(&self) -> Result<Appender, FolderError> {
        let path = self.path.join("records.jsonl");
        let refuse = |why: io::Error| refused("write", &path, &why);
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .read(true)
            .open(&path)
            .map_err(refuse)?;
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
        let error = folder.records().expect_err("refused");
        assert!(
            error.bad_input
                && error.message.contains("records.jsonl:1")
                && error.message.contains("newer")
        );
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
