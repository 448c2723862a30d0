//! The census of system calls: how a child is run under strace, and what its log says. Parent only.
//!
//! Only what lies between the marks of [`crate::probe::markers`] counts, so neither the loader nor the harness shows
//! up. A second reading of the same log tells which moves of blocks the kernel made by changing page tables: glibc
//! grows a large block by mremap, and such a move copies nothing.

use crate::probe::machine::find_program_in;
use crate::probe::markers;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Finds strace on `PATH`.
///
/// # Errors
/// Why there is none, with the command that would change that.
pub fn locate() -> Result<PathBuf, String> {
    locate_in(&std::env::var_os("PATH").unwrap_or_default())
}

fn locate_in(path: &OsStr) -> Result<PathBuf, String> {
    find_program_in(path, "strace")
        .ok_or_else(|| "strace is not on PATH; install it with: apt-get install strace".to_owned())
}

/// Traces a command that does nothing, because some containers have strace and forbid what it does.
///
/// # Errors
/// What strace says, with what would change that.
pub fn try_out(strace: &Path) -> Result<(), String> {
    let output = Command::new(strace)
        .args(arguments(Path::new("/dev/null"), &BTreeMap::new()))
        .arg("true")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{} cannot be started: {error}", strace.display()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "strace cannot trace here: {}; allow ptrace (in a container: --cap-add=SYS_PTRACE)",
        said.lines().next().unwrap_or("it says nothing").trim()
    ))
}

/// strace's own arguments; the child's program and its arguments follow them. The log goes to `log`. The variables in
/// `tracee` are put into the child's environment by strace, and are not in its own: what is preloaded must not run in
/// strace.
pub fn arguments(log: &Path, tracee: &BTreeMap<String, String>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = [
        "-f",  // threads and forked processes as well
        "-qq", // no words about attaching and exiting
        "-e",
        "signal=none",
        "-s", // no contents of strings: they cost time and say nothing here
        "0",
        "-o",
    ]
    .map(OsString::from)
    .into();
    arguments.push(log.into());
    for (name, value) in tracee {
        arguments.push("-E".into());
        arguments.push(format!("{name}={value}").into());
    }
    arguments.push("--".into());
    arguments
}

/// One mremap that succeeded. Addresses, and lengths in bytes, as in the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mremap {
    /// Where the range was.
    pub old_addr: u64,
    /// Its length before.
    pub old_len: u64,
    /// Its length after.
    pub new_len: u64,
    /// Where it is now.
    pub new_addr: u64,
}

impl Mremap {
    /// True if the range has another address now.
    pub fn moved(&self) -> bool {
        self.old_addr != self.new_addr
    }
}

/// What a log holds between its marks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    /// Calls by name, failed ones included.
    pub calls: BTreeMap<String, u64>,
    /// Every mremap that succeeded, in the order of the log.
    pub mremaps: Vec<Mremap>,
    /// Measured regions, at least one.
    pub regions: u64,
    /// True if the log ends within a region: the process was stopped, and the counts reach that far.
    pub cut_short: bool,
}

impl Trace {
    /// The calls as metrics of a record: `sys.NAME`.
    pub fn metrics(&self) -> BTreeMap<String, u64> {
        self.calls
            .iter()
            .map(|(name, &count)| (format!("sys.{name}"), count))
            .collect()
    }

    /// How many mremaps changed the address.
    pub fn moving_mremaps(&self) -> u64 {
        self.mremaps.iter().filter(|m| m.moved()).count() as u64
    }
}

/// Why a log could not be used.
#[derive(Debug)]
pub enum LogError {
    /// It could not be read.
    Io(io::Error),
    /// It holds no begin mark: nothing was measured.
    NoRegion,
    /// A line is not what strace writes.
    Line {
        /// Its number, from 1.
        number: u64,
        /// Its text.
        text: String,
    },
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::Io(error) => write!(f, "the strace log cannot be read: {error}"),
            LogError::NoRegion => f.write_str(
                "the strace log holds no measured region: the child never began to measure",
            ),
            LogError::Line { number, text } => write!(
                f,
                "line {number} of the strace log is not understood: {text}"
            ),
        }
    }
}
impl std::error::Error for LogError {}

/// Reads a log from a file.
///
/// # Errors
/// [`LogError`].
pub fn read_log(log: &Path) -> Result<Trace, LogError> {
    parse(io::BufReader::new(
        std::fs::File::open(log).map_err(LogError::Io)?,
    ))
}

/// Reads a log. A last line without its end is left out: a killed strace leaves one.
///
/// # Errors
/// [`LogError`].
pub fn parse(mut log: impl BufRead) -> Result<Trace, LogError> {
    let mut parser = Parser::default();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        log.read_until(b'\n', &mut line).map_err(LogError::Io)?;
        if line.pop() != Some(b'\n') {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        if parser.line(&text).is_none() {
            return Err(LogError::Line {
                number,
                text: text.into_owned(),
            });
        }
    }
    if parser.trace.regions == 0 {
        return Err(LogError::NoRegion);
    }
    parser.trace.cut_short = parser.inside;
    Ok(parser.trace)
}

#[derive(Default)]
struct Parser {
    trace: Trace,
    /// Between a begin and an end mark.
    inside: bool,
    /// The mremap that each process has begun and not ended, its arguments so far. Others need no second half: a
    /// call is counted where it begins.
    pending: HashMap<u32, String>,
}

impl Parser {
    /// Takes one line. `None`: strace does not write such a line.
    fn line(&mut self, line: &str) -> Option<()> {
        let (process, text) = split_process(line);
        if text.starts_with("+++ ") {
            // The process ended; its number may come again.
            self.pending.remove(&process);
            return Some(());
        }
        if text.starts_with("--- ") || text.starts_with("strace: ") {
            return Some(());
        }
        if let Some(rest) = text.strip_prefix("<... ") {
            let (_, rest) = rest.split_once("resumed>")?;
            if let Some(mut call) = self.pending.remove(&process) {
                call.push_str(rest);
                self.mremap(&call)?;
            }
            return Some(());
        }
        let (name, rest) = text.split_once('(')?;
        if name == "???" {
            // A process that ended before strace could look.
            return Some(());
        }
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return None;
        }
        if name == "close" {
            let end = rest.find([')', ' ']).unwrap_or(rest.len());
            match rest[..end].parse() {
                Ok(markers::BEGIN) => {
                    self.trace.regions += u64::from(!self.inside);
                    self.inside = true;
                    return Some(());
                }
                Ok(markers::END) => {
                    self.inside = false;
                    return Some(());
                }
                _ => {}
            }
        }
        if !self.inside {
            return Some(());
        }
        match self.trace.calls.get_mut(name) {
            Some(count) => *count += 1,
            None => {
                self.trace.calls.insert(name.to_owned(), 1);
            }
        }
        if name == "mremap" {
            match rest.strip_suffix("<unfinished ...>") {
                Some(begun) => {
                    self.pending.insert(process, begun.to_owned());
                }
                None => self.mremap(rest)?,
            }
        }
        Some(())
    }

    /// Takes the text of an mremap behind its opening bracket: `0x7f.., 4096, 8192, MREMAP_MAYMOVE) = 0x7f..`.
    fn mremap(&mut self, call: &str) -> Option<()> {
        let (arguments, result) = call.rsplit_once(" = ")?;
        if !result.starts_with("0x") {
            // -1 with an error, or ? for a process that died in the call: the range stays as it was.
            return Some(());
        }
        let mut arguments = arguments.split([',', ')']).map(number);
        self.trace.mremaps.push(Mremap {
            old_addr: arguments.next()??,
            old_len: arguments.next()??,
            new_len: arguments.next()??,
            new_addr: number(result)?,
        });
        Some(())
    }
}

/// Splits off the process id that strace writes in front with `-f`; 0 if there is none.
fn split_process(line: &str) -> (u32, &str) {
    let (word, rest) = match line.strip_prefix("[pid ") {
        Some(rest) => rest.trim_start().split_once(']').unwrap_or(("", line)),
        None => line.split_once(' ').unwrap_or(("", line)),
    };
    match word.parse() {
        Ok(process) => (process, rest.trim_start()),
        Err(_) => (0, line),
    }
}

/// A number as strace writes it, decimal or hexadecimal.
fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Which moves of blocks the kernel made: `(moves, bytes)` of those among `moves` (`(from, to, bytes)`, in order) that
/// an mremap explains.
///
/// An mremap explains a move exactly if the block lay in the old range and was displaced by as much as the range
/// was. Each explains one move at most; of several alike, the first explains the first.
pub fn mremap_moved(moves: &[(u64, u64, u64)], mremaps: &[Mremap]) -> (u64, u64) {
    // By displacement, because a block that was copied shares its displacement with no mremap, but for chance.
    let mut unused: HashMap<u64, VecDeque<Mremap>> = HashMap::new();
    for mremap in mremaps.iter().filter(|m| m.moved()) {
        unused
            .entry(mremap.new_addr.wrapping_sub(mremap.old_addr))
            .or_default()
            .push_back(*mremap);
    }
    let (mut count, mut sum) = (0, 0);
    for &(from, to, bytes) in moves {
        let Some(alike) = unused.get_mut(&to.wrapping_sub(from)) else {
            continue;
        };
        let holds = |m: &Mremap| {
            from.checked_sub(m.old_addr)
                .is_some_and(|offset| offset < m.old_len)
        };
        if let Some(index) = alike.iter().position(holds) {
            alike.remove(index);
            count += 1;
            sum += bytes;
        }
    }
    (count, sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::mm::{MapFlags, MremapFlags, ProtFlags};

    fn trace(log: &str) -> Trace {
        parse(log.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
    }

    fn counts(trace: &Trace) -> Vec<(&str, u64)> {
        trace
            .calls
            .iter()
            .map(|(name, &count)| (name.as_str(), count))
            .collect()
    }

    /// What `growth` to 64 MiB under glibc looks like, shortened.
    #[test]
    fn one_process() {
        let trace = trace(
            "\
11110 execve(\"\"..., [\"\"...], 0x7ffd46e1a0d8 /* 3 vars */) = 0
11110 brk(NULL)                         = 0x55933c35a000
11110 close(3)                          = 0
11110 close(-1001)                      = -1 EBADF (Bad file descriptor)
11110 brk(0x55933c37b000)               = 0x55933c37b000
11110 mmap(NULL, 135168, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7fc60d6b8000
11110 mremap(0x7fc60d6b8000, 135168, 139264, MREMAP_MAYMOVE) = 0x7fc60d6b8000
11110 mremap(0x7fc60d6b8000, 139264, 143360, MREMAP_MAYMOVE) = 0x7fc60d400000
11110 mremap(0x7fc60d400000, 143360, 1099511627776, MREMAP_MAYMOVE) = -1 ENOMEM (Cannot allocate memory)
11110 munmap(0x7fc60d400000, 143360)    = 0
11110 close(-1002)                      = -1 EBADF (Bad file descriptor)
11110 write(1, \"\"..., 812)            = 812
11110 exit_group(0)                     = ?
11110 +++ exited with 0 +++
",
        );
        assert_eq!(
            counts(&trace),
            [("brk", 1), ("mmap", 1), ("mremap", 3), ("munmap", 1)]
        );
        assert_eq!(
            (trace.regions, trace.cut_short, trace.moving_mremaps()),
            (1, false, 1)
        );
        assert_eq!(trace.mremaps.len(), 2, "the failed call changed nothing");
        assert_eq!(
            trace.mremaps[1],
            Mremap {
                old_addr: 0x7fc60d6b8000,
                old_len: 139264,
                new_len: 143360,
                new_addr: 0x7fc60d400000
            }
        );
        assert_eq!(trace.metrics().get("sys.mremap"), Some(&3));
    }

    #[test]
    fn several_regions_with_other_things_between() {
        let trace = trace(
            "\
close(-1001) = -1 EBADF (Bad file descriptor)
madvise(0x7f0000000000, 4096, MADV_DONTNEED) = 0
close(-1002) = -1 EBADF (Bad file descriptor)
openat(AT_FDCWD, \"\"..., O_RDONLY) = 3
close(-1001) = -1 EBADF (Bad file descriptor)
madvise(0x7f0000000000, 4096, MADV_DONTNEED) = 0
close(4) = 0
close(-1002) = -1 EBADF (Bad file descriptor)
munmap(0x7f0000000000, 4096) = 0
",
        );
        assert_eq!(counts(&trace), [("close", 1), ("madvise", 2)]);
        assert_eq!(trace.regions, 2);
    }

    #[test]
    fn threads_interrupt_each_other() {
        let trace = trace(
            "\
7 futex(0x1, FUTEX_WAIT, 0, NULL <unfinished ...>
8 close(-1001 <unfinished ...>
7 <... futex resumed>) = 0
8 <... close resumed>) = -1 EBADF (Bad file descriptor)
7 mremap(0x1000, 0x1000, 0x2000, 0x1 <unfinished ...>
8 mremap(0x9000, 4096, 8192, MREMAP_MAYMOVE|MREMAP_FIXED, 0xf000 <unfinished ...>
7 <... mremap resumed>) = 0x5000
9 sched_yield( <unfinished ...>
8 --- SIGUSR1 {si_signo=SIGUSR1, si_code=SI_TKILL} ---
9 <... sched_yield resumed>) = 0
8 <... mremap resumed>) = 0xf000
9 mremap(0x1000, 4096, 8192, MREMAP_MAYMOVE <unfinished ...>
9 <... mremap resumed>) = ?
8 close(-1002) = -1 EBADF (Bad file descriptor)
9 +++ killed by SIGKILL +++
",
        );
        assert_eq!(
            counts(&trace),
            [("mremap", 3), ("sched_yield", 1)],
            "the futex began outside"
        );
        let seven = Mremap {
            old_addr: 0x1000,
            old_len: 0x1000,
            new_len: 0x2000,
            new_addr: 0x5000,
        };
        assert_eq!(trace.mremaps[0], seven);
    }

    #[test]
    fn a_signal_in_a_call_does_not_lose_it() {
        let trace = trace(
            "\
8 close(-1001) = -1 EBADF (Bad file descriptor)
8 mremap(0x9000, 4096, 8192, MREMAP_MAYMOVE <unfinished ...>
8 --- SIGUSR1 {si_signo=SIGUSR1, si_code=SI_TKILL} ---
8 <... mremap resumed>) = 0xf000
8 close(-1002) = -1 EBADF (Bad file descriptor)
",
        );
        assert_eq!(trace.moving_mremaps(), 1);
    }

    #[test]
    fn other_ways_of_writing_the_process() {
        let trace = trace(
            "[pid    12] close(-1001) = -1 EBADF\n[pid 12] getpid() = 12\n12    getpid() = 12\ngetpid() = 12\n",
        );
        assert_eq!(counts(&trace), [("getpid", 3)]);
        assert!(trace.cut_short);
    }

    #[test]
    fn a_killed_trace_counts_as_far_as_it_goes() {
        let trace = trace(
            "7 close(-1001) = -1 EBADF (Bad file descriptor)\n7 brk(NULL) = 0x1000\n7 mremap(0x7fc60d6b8",
        );
        assert_eq!(counts(&trace), [("brk", 1)]);
        assert!(trace.cut_short);
    }

    #[test]
    fn garbage_and_missing_marks_are_errors() {
        for (log, wanted) in [
            ("", "no measured region"),
            ("7 brk(NULL) = 0x1000\n", "no measured region"),
            (
                "7 brk(NULL) = 0x1000\nHello, world\n",
                "line 2 of the strace log",
            ),
            (
                "7 close(-1001) = -1 EBADF\n7 mremap(here, 1, 2, 3) = 0x1000\n",
                "line 2 of the strace log",
            ),
            (
                "7 close(-1001) = -1 EBADF\n7 mremap(0x1, 1, 2, 3)\n",
                "line 2 of the strace log",
            ),
        ] {
            let error = parse(log.as_bytes()).expect_err(log).to_string();
            assert!(error.contains(wanted), "{log:?}: {error}");
        }
        let missing = read_log(Path::new("/nonexistent/log"))
            .unwrap_err()
            .to_string();
        assert!(missing.contains("cannot be read"), "{missing}");
    }

    #[test]
    fn moves_and_mremaps_are_matched_one_to_one() {
        let m = |old_addr, old_len, new_addr| Mremap {
            old_addr,
            old_len,
            new_len: old_len + 4096,
            new_addr,
        };
        // glibc's block begins 16 bytes into the mapping.
        let mremaps = [
            m(0x10000, 0x1000, 0x80000),
            m(0x80000, 0x2000, 0x80000),
            m(0x80000, 0x3000, 0x10000),
        ];
        let there = (0x10010, 0x80010, 4000);
        let back = (0x80010, 0x10010, 12000);
        assert_eq!(mremap_moved(&[there, back], &mremaps), (2, 16000));
        // Each mremap explains one move.
        assert_eq!(mremap_moved(&[there, there, back], &mremaps), (2, 16000));
        // Another displacement, or a block outside the old range: copied.
        assert_eq!(mremap_moved(&[(0x10010, 0x80020, 4000)], &mremaps), (0, 0));
        assert_eq!(mremap_moved(&[(0x11000, 0x81000, 4000)], &mremaps), (0, 0));
        assert_eq!(mremap_moved(&[(0xfff0, 0x7fff0, 4000)], &mremaps), (0, 0));
        // An mremap that moved nothing explains nothing, not even a "move" to the same place.
        assert_eq!(mremap_moved(&[(0x80010, 0x80010, 4000)], &mremaps), (0, 0));
        // Two ranges with one displacement.
        let twins = [m(0x10000, 0x1000, 0x80000), m(0x20000, 0x1000, 0x90000)];
        assert_eq!(
            mremap_moved(&[(0x20010, 0x90010, 1), (0x10010, 0x80010, 2)], &twins),
            (2, 3)
        );
        assert_eq!(mremap_moved(&[], &mremaps), (0, 0));
    }

    #[test]
    fn a_missing_strace_comes_with_the_cure() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("strace"), "not executable").unwrap();
        let reason = locate_in(folder.path().as_os_str()).unwrap_err();
        assert!(reason.contains("apt-get install strace"), "{reason}");
        assert!(locate_in(OsStr::new("")).is_err());
    }

    #[test]
    fn a_strace_that_fails_comes_with_its_words() {
        let reason = try_out(Path::new("/nonexistent/strace")).unwrap_err();
        assert!(reason.contains("cannot be started"), "{reason}");
        let reason = try_out(Path::new("/bin/false")).unwrap_err();
        assert!(reason.contains("ptrace"), "{reason}");
    }

    /// The test starts itself under strace, and as the traced child makes calls whose number is known.
    #[test]
    fn a_real_trace() {
        const TRACED: &str = "HEAPLAB_TEST_TRACED";
        if std::env::var_os(TRACED).is_some() {
            traced_child();
            return;
        }
        let strace = locate().unwrap_or_else(|reason| panic!("this test needs strace: {reason}"));
        try_out(&strace).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let output = Command::new(strace)
            .args(arguments(&log, &BTreeMap::new()))
            .arg(std::env::current_exe().unwrap())
            .args([
                "probe::strace::tests::a_real_trace",
                "--exact",
                "--test-threads=1",
                "--nocapture",
            ])
            .env(TRACED, "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && text.contains("1 passed"),
            "{text}"
        );
        let trace = read_log(&log).unwrap();
        assert_eq!((trace.regions, trace.cut_short), (2, false));
        let of = |name: &str| trace.calls.get(name).copied();
        assert_eq!(
            (of("mmap"), of("mremap"), of("munmap"), of("getppid")),
            (Some(1), Some(2), Some(2), Some(3))
        );
        assert_eq!(of("execve"), None, "it lies before the begin mark");
        assert_eq!(trace.moving_mremaps(), 1);
        let told = text
            .lines()
            .find_map(|line| line.split_once("moved "))
            .expect("the child tells what it moved")
            .1;
        let told: Vec<u64> = told.split(' ').map(|n| n.parse().unwrap()).collect();
        let block = (told[0] + 16, told[1] + 16, 4000);
        assert_eq!(mremap_moved(&[block, block], &trace.mremaps), (1, 4000));
    }

    fn traced_child() {
        let page = rustix::param::page_size();
        let parent = || std::hint::black_box(rustix::process::getppid());
        parent();
        markers::begin();
        // SAFETY: fresh anonymous memory that nobody else knows and nobody reads; every range below lies in it.
        let (from, to) = unsafe {
            let all = rustix::mm::mmap_anonymous(
                core::ptr::null_mut(),
                3 * page,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
            .unwrap();
            // The first OS page cannot grow in place, the second lies behind it.
            let moved = rustix::mm::mremap(all, page, 2 * page, MremapFlags::MAYMOVE).unwrap();
            rustix::mm::mremap(moved, 2 * page, page, MremapFlags::empty()).unwrap();
            rustix::mm::munmap(moved, page).unwrap();
            rustix::mm::munmap(all.cast::<u8>().add(page).cast(), 2 * page).unwrap();
            (all as u64, moved as u64)
        };
        parent();
        markers::end();
        parent();
        markers::begin();
        parent();
        parent();
        markers::end();
        println!("moved {from} {to}");
    }
}
