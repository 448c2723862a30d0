//! Real files: what lies under a root, and their contents. Meets anything on a file system without hanging.
//!
//! Only regular files are read. Symbolic links are not followed (the root itself may be one: its user named it), so
//! there are no loops. Everything else is left alone and counted by reason. A name's type is asked before it is
//! opened, because opening a device can already do something; it is opened without waiting (`O_NONBLOCK`) and
//! asked again, because it may have been exchanged in between.

use crate::input::lines;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, Stat, fstat, open, openat, statat};
use rustix::io::{Errno, read, retry_on_intr};
use rustix::path::Arg;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Room in bytes that a buffer should have for a file which says that it is empty: files of `/proc` do so, whatever
/// they hold.
pub const UNSIZED_ROOM: u64 = 1 << 20;

/// Why something under the root was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SkipReason {
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A Unix socket.
    Socket,
    /// A block device.
    BlockDevice,
    /// A character device.
    CharDevice,
    /// Of a type unknown to us.
    UnknownType,
    /// A file that we may not open.
    PermissionDenied,
    /// A directory that could not be opened, or not be read to its end.
    UnreadableDirectory,
    /// Gone between two looks at it.
    Vanished,
    /// More than [`lines::LARGEST`] bytes.
    TooLarge,
    /// Its path is longer than the kernel takes.
    PathTooLong,
    /// Reading it would wait for something, as with some files of `/proc`.
    WouldBlock,
    /// Opening or reading it failed in some other way.
    ReadError,
}

impl SkipReason {
    /// The name in records.
    pub fn name(self) -> &'static str {
        match self {
            SkipReason::Symlink => "symlink",
            SkipReason::Fifo => "fifo",
            SkipReason::Socket => "socket",
            SkipReason::BlockDevice => "block-device",
            SkipReason::CharDevice => "char-device",
            SkipReason::UnknownType => "unknown-type",
            SkipReason::PermissionDenied => "permission-denied",
            SkipReason::UnreadableDirectory => "unreadable-directory",
            SkipReason::Vanished => "vanished",
            SkipReason::TooLarge => "too-large",
            SkipReason::PathTooLong => "path-too-long",
            SkipReason::WouldBlock => "would-block",
            SkipReason::ReadError => "read-error",
        }
    }

    /// Adds one to this reason's count.
    pub fn count_in(self, skipped: &mut BTreeMap<String, u64>) {
        *skipped.entry(self.name().to_owned()).or_default() += 1;
    }

    /// Why a path that was seen a moment ago could not be opened or asked about.
    fn of_path(error: Errno) -> SkipReason {
        match error {
            Errno::ACCESS | Errno::PERM => SkipReason::PermissionDenied,
            Errno::NOENT | Errno::NOTDIR => SkipReason::Vanished,
            Errno::LOOP => SkipReason::Symlink,
            Errno::NXIO => SkipReason::Socket,
            Errno::NAMETOOLONG => SkipReason::PathTooLong,
            Errno::AGAIN => SkipReason::WouldBlock,
            _ => SkipReason::ReadError,
        }
    }

    /// Why something of this type is not read; `None` for a regular file.
    fn of_type(file_type: FileType) -> Option<SkipReason> {
        match file_type {
            FileType::RegularFile => None,
            FileType::Symlink => Some(SkipReason::Symlink),
            FileType::Fifo => Some(SkipReason::Fifo),
            FileType::Socket => Some(SkipReason::Socket),
            FileType::BlockDevice => Some(SkipReason::BlockDevice),
            FileType::CharacterDevice => Some(SkipReason::CharDevice),
            // A directory where a file was seen.
            FileType::Directory => Some(SkipReason::Vanished),
            _ => Some(SkipReason::UnknownType),
        }
    }
}

/// The root itself is no good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WalkError {
    /// It does not exist.
    Missing(PathBuf),
    /// It may not be read.
    PermissionDenied(PathBuf),
    /// It is neither a directory nor a regular file; the reason says what it is.
    WrongType(PathBuf, SkipReason),
    /// The kernel refuses with this error number.
    Os(PathBuf, i32),
}

impl fmt::Display for WalkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WalkError::Missing(root) => {
                write!(f, "{}: there is no such file or directory", root.display())
            }
            WalkError::PermissionDenied(root) => write!(f, "{}: permission denied", root.display()),
            WalkError::WrongType(root, what) => {
                write!(
                    f,
                    "{}: neither a directory nor a regular file ({})",
                    root.display(),
                    what.name()
                )
            }
            WalkError::Os(root, number) => write!(
                f,
                "{}: cannot be opened (OS error {number})",
                root.display()
            ),
        }
    }
}
impl std::error::Error for WalkError {}

/// One regular file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Path under the root; the file's name if the root is the file.
    pub path: PathBuf,
    /// Bytes that it said to have at the walk.
    pub size: u64,
}

/// What lies under a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    root: PathBuf,
    root_is_file: bool,
    /// The regular files that can be opened, in the order of their paths' bytes.
    pub files: Vec<Entry>,
    /// What was left out, by [`SkipReason::name`].
    pub skipped: BTreeMap<String, u64>,
}

/// What [`Tree::read`] has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadFile {
    /// Bytes read, at the start of the buffer.
    pub bytes: usize,
    /// True if that is not the file that the walk saw: it has grown or shrunk since, or does not fit the buffer.
    pub changed: bool,
}

/// Walks `root`, a directory or one regular file.
///
/// # Errors
/// [`WalkError`] if the root itself is no good; nothing under it can make the walk fail.
pub fn walk(root: &Path) -> Result<Tree, WalkError> {
    let no_good = |error: Errno| match error {
        Errno::NOENT | Errno::NOTDIR => WalkError::Missing(root.to_owned()),
        Errno::ACCESS | Errno::PERM => WalkError::PermissionDenied(root.to_owned()),
        error => WalkError::Os(root.to_owned(), error.raw_os_error()),
    };
    let mut tree = Tree {
        root: root.to_owned(),
        root_is_file: false,
        files: Vec::new(),
        skipped: BTreeMap::new(),
    };
    let stat = statat(CWD, root, AtFlags::empty()).map_err(no_good)?;
    match file_type(&stat) {
        FileType::Directory => {
            let directory = open_directory(root, OFlags::empty()).map_err(no_good)?;
            tree.walk_under(directory);
            tree.files.sort_unstable_by(|a, b| {
                a.path
                    .as_os_str()
                    .as_bytes()
                    .cmp(b.path.as_os_str().as_bytes())
            });
        }
        FileType::RegularFile => {
            tree.root_is_file = true;
            let (_, stat) =
                open_regular(CWD, root, OFlags::empty()).map_err(|error| match error {
                    Refusal::Os(error) => no_good(error),
                    Refusal::Type(what) => WalkError::WrongType(root.to_owned(), what),
                })?;
            let name = root.file_name().unwrap_or(root.as_os_str());
            tree.take(PathBuf::from(name), stat.st_size as u64);
        }
        other => {
            let what = SkipReason::of_type(other).unwrap_or(SkipReason::UnknownType);
            return Err(WalkError::WrongType(root.to_owned(), what));
        }
    }
    Ok(tree)
}

impl Tree {
    /// Bytes of the buffer that holds any one of the files.
    pub fn largest(&self) -> u64 {
        self.files
            .iter()
            .map(|file| {
                if file.size == 0 {
                    UNSIZED_ROOM
                } else {
                    file.size
                }
            })
            .max()
            .unwrap_or(0)
    }

    /// Reads a file of this tree to its end or the buffer's, whichever comes first.
    ///
    /// # Errors
    /// Why it cannot be read any more.
    pub fn read(&self, entry: &Entry, buffer: &mut [u8]) -> Result<ReadFile, SkipReason> {
        let (file, stat) = if self.root_is_file {
            open_regular(CWD, &self.root, OFlags::empty())
        } else {
            open_regular(CWD, self.root.join(&entry.path), OFlags::NOFOLLOW)
        }?;
        let mut bytes = 0;
        let mut more = [0];
        let at_end = loop {
            let rest = if bytes < buffer.len() {
                &mut buffer[bytes..]
            } else {
                &mut more[..]
            };
            match retry_on_intr(|| read(&file, &mut *rest)).map_err(SkipReason::of_path)? {
                0 => break true,
                _ if bytes == buffer.len() => break false,
                n => bytes += n,
            }
        };
        let says = stat.st_size as u64;
        // A file of /proc says 0 then and now, and that is no change.
        let as_it_says = says == bytes as u64 || says == 0;
        Ok(ReadFile {
            bytes,
            changed: !at_end || says != entry.size || !as_it_says,
        })
    }

    fn skip(&mut self, reason: SkipReason) {
        reason.count_in(&mut self.skipped);
    }

    fn take(&mut self, path: PathBuf, size: u64) {
        if size > lines::LARGEST {
            self.skip(SkipReason::TooLarge)
        } else {
            self.files.push(Entry { path, size })
        }
    }

    /// Walks everything under the root, opened as `top`. One directory is open at a time, and the way back is a
    /// list of paths, so the depth is bounded by the length of a path alone.
    fn walk_under(&mut self, top: OwnedFd) {
        let mut buffer = Vec::with_capacity(32 << 10);
        let mut waiting = Vec::new();
        self.walk_one(&top, Path::new(""), &mut buffer, &mut waiting);
        drop(top);
        while let Some(path) = waiting.pop() {
            match open_directory(&self.root.join(&path), OFlags::NOFOLLOW) {
                Ok(directory) => self.walk_one(&directory, &path, &mut buffer, &mut waiting),
                Err(error) => self.skip(match SkipReason::of_path(error) {
                    reason @ (SkipReason::Symlink
                    | SkipReason::Vanished
                    | SkipReason::PathTooLong) => reason,
                    _ => SkipReason::UnreadableDirectory,
                }),
            }
        }
    }

    fn walk_one(
        &mut self,
        directory: &OwnedFd,
        path: &Path,
        buffer: &mut Vec<u8>,
        waiting: &mut Vec<PathBuf>,
    ) {
        let mut names = RawDir::new(directory, buffer.spare_capacity_mut());
        while let Some(name) = names.next() {
            let Ok(name) = name else {
                return self.skip(SkipReason::UnreadableDirectory);
            };
            let name = name.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let below = || path.join(OsStr::from_bytes(name.to_bytes()));
            match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| file_type(&stat)) {
                Ok(FileType::Directory) => waiting.push(below()),
                Ok(FileType::RegularFile) => {
                    match open_regular(directory, name, OFlags::NOFOLLOW) {
                        Ok((_, stat)) => self.take(below(), stat.st_size as u64),
                        Err(refusal) => self.skip(refusal.into()),
                    }
                }
                Ok(other) => {
                    self.skip(SkipReason::of_type(other).unwrap_or(SkipReason::UnknownType))
                }
                Err(error) => self.skip(SkipReason::of_path(error)),
            }
        }
    }
}

/// Why a regular file was not opened.
enum Refusal {
    Os(Errno),
    Type(SkipReason),
}

impl From<Refusal> for SkipReason {
    fn from(refusal: Refusal) -> SkipReason {
        match refusal {
            Refusal::Os(error) => SkipReason::of_path(error),
            Refusal::Type(reason) => reason,
        }
    }
}

fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn open_directory(path: &Path, more: OFlags) -> Result<OwnedFd, Errno> {
    open(
        path,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC | more,
        Mode::empty(),
    )
}

/// Opens a file for reading, without ever waiting, and makes sure that it is a regular one.
fn open_regular(from: impl AsFd, path: impl Arg, more: OFlags) -> Result<(OwnedFd, Stat), Refusal> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | more;
    let file = openat(from, path, flags, Mode::empty()).map_err(Refusal::Os)?;
    let stat = fstat(&file).map_err(Refusal::Os)?;
    match SkipReason::of_type(file_type(&stat)) {
        None => Ok((file, stat)),
        Some(reason) => Err(Refusal::Type(reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    fn names(tree: &Tree) -> Vec<&[u8]> {
        tree.files
            .iter()
            .map(|file| file.path.as_os_str().as_bytes())
            .collect()
    }

    fn skipped(tree: &Tree) -> Vec<(&str, u64)> {
        tree.skipped
            .iter()
            .map(|(reason, &count)| (reason.as_str(), count))
            .collect()
    }

    fn fifo(path: &Path) {
        rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }

    fn is_root() -> bool {
        rustix::process::geteuid().is_root()
    }

    #[test]
    fn everything_that_a_directory_can_hold() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let at = |name: &str| root.join(name);
        fs::create_dir_all(at("b/deep/er")).unwrap();
        fs::create_dir(at("empty-directory")).unwrap();
        fs::write(at("b/deep/er/file"), "deep\n").unwrap();
        fs::write(at("b-file"), "beside\n").unwrap();
        fs::write(at("empty"), "").unwrap();
        fs::write(at("binary"), [0, 255, 10, 0, 13, 10]).unwrap();
        fs::write(at("no-newline"), "no newline").unwrap();
        let odd = root.join(OsStr::from_bytes(b"not \xff\xfe utf-8\n"));
        fs::write(&odd, "odd\n").unwrap();
        fifo(&at("fifo"));
        let _listener = UnixListener::bind(at("socket")).unwrap();
        symlink(root, at("loop")).unwrap();
        symlink("..", at("b/up")).unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        symlink("b-file", at("to-a-file")).unwrap();

        let tree = walk(root).unwrap();
        assert_eq!(
            names(&tree),
            [
                &b"b-file"[..], // '-' sorts before '/'
                b"b/deep/er/file",
                b"binary",
                b"empty",
                b"no-newline",
                b"not \xff\xfe utf-8\n",
            ]
        );
        assert_eq!(skipped(&tree), [("fifo", 1), ("socket", 1), ("symlink", 4)]);
        assert_eq!(tree.largest(), UNSIZED_ROOM);
        let mut buffer = [0; 64];
        for (file, wanted) in tree.files.iter().zip([
            &b"beside\n"[..],
            b"deep\n",
            &[0, 255, 10, 0, 13, 10],
            b"",
            b"no newline",
            b"odd\n",
        ]) {
            assert_eq!(file.size, wanted.len() as u64);
            let got = tree.read(file, &mut buffer).unwrap();
            assert_eq!(
                got,
                ReadFile {
                    bytes: wanted.len(),
                    changed: false
                },
                "{file:?}"
            );
            assert_eq!(&buffer[..got.bytes], wanted);
        }
        assert_eq!(walk(root).unwrap(), tree, "the order is always the same");
    }

    #[test]
    fn a_root_that_is_one_file_or_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("one");
        fs::write(&file, "one file\n").unwrap();
        let link = folder.path().join("link");
        symlink("one", &link).unwrap();
        let directory = folder.path().join("directory");
        symlink(".", &directory).unwrap();
        for (root, name) in [(&file, "one"), (&link, "link")] {
            let tree = walk(root).unwrap();
            assert_eq!(
                tree.files,
                [Entry {
                    path: name.into(),
                    size: 9
                }]
            );
            let mut buffer = [0; 16];
            assert_eq!(tree.read(&tree.files[0], &mut buffer).unwrap().bytes, 9);
        }
        let tree = walk(&directory).unwrap();
        assert_eq!(names(&tree), [b"one"]);
        assert_eq!(skipped(&tree), [("symlink", 2)]);
    }

    #[test]
    fn a_root_that_is_no_good_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        fifo(&pipe);
        let missing = folder.path().join("missing");
        let below_a_file = folder.path().join("pipe/x");
        assert_eq!(
            walk(&missing).unwrap_err(),
            WalkError::Missing(missing.clone())
        );
        assert_eq!(
            walk(&below_a_file).unwrap_err(),
            WalkError::Missing(below_a_file)
        );
        assert_eq!(
            walk(&pipe).unwrap_err(),
            WalkError::WrongType(pipe.clone(), SkipReason::Fifo)
        );
        assert_eq!(
            walk(Path::new("")).unwrap_err(),
            WalkError::Missing(PathBuf::new())
        );
        let nul = walk(Path::new("a\0b")).unwrap_err().to_string();
        assert!(nul.contains("OS error"), "{nul}");
        let text = walk(&missing).unwrap_err().to_string();
        assert!(text.contains(missing.to_str().unwrap()), "{text}");
    }

    #[test]
    fn devices() {
        // Whoever may make a node tests with one of his own; the kernel's serve everybody.
        let error = walk(Path::new("/dev/null")).unwrap_err();
        assert_eq!(
            error,
            WalkError::WrongType("/dev/null".into(), SkipReason::CharDevice)
        );
        let folder = tempfile::tempdir().unwrap();
        let node = folder.path().join("node");
        let like_null = rustix::fs::makedev(1, 3);
        let made =
            rustix::fs::mknodat(CWD, &node, FileType::CharacterDevice, Mode::RUSR, like_null);
        if is_root() {
            made.unwrap();
            assert_eq!(skipped(&walk(folder.path()).unwrap()), [("char-device", 1)]);
        } else {
            assert_eq!(made, Err(Errno::PERM));
        }
    }

    #[test]
    fn a_file_that_changes_after_the_walk() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["exchanged", "gone", "grown", "linked", "shrunk"] {
            fs::write(folder.path().join(name), "0123456789").unwrap();
        }
        let tree = walk(folder.path()).unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::File::options()
            .append(true)
            .open(at("grown"))
            .unwrap()
            .write_all(&[b'+'; 90])
            .unwrap();
        fs::File::options()
            .write(true)
            .open(at("shrunk"))
            .unwrap()
            .set_len(3)
            .unwrap();
        fs::remove_file(at("gone")).unwrap();
        fs::remove_file(at("linked")).unwrap();
        symlink("grown", at("linked")).unwrap();
        fs::remove_file(at("exchanged")).unwrap();
        fifo(&at("exchanged"));
        let mut buffer = [0; 64];
        let got: Vec<_> = tree
            .files
            .iter()
            .map(|file| tree.read(file, &mut buffer))
            .collect();
        assert_eq!(
            got,
            [
                Err(SkipReason::Fifo),
                Err(SkipReason::Vanished),
                Ok(ReadFile {
                    bytes: 64,
                    changed: true
                }),
                Err(SkipReason::Symlink),
                Ok(ReadFile {
                    bytes: 3,
                    changed: true
                }),
            ]
        );
        // A buffer that is filled to the last byte is no sign of growth; one that is too small is.
        let tree = walk(&at("shrunk")).unwrap();
        assert_eq!(
            tree.read(&tree.files[0], &mut buffer[..3]),
            Ok(ReadFile {
                bytes: 3,
                changed: false
            })
        );
        assert_eq!(
            tree.read(&tree.files[0], &mut buffer[..2]),
            Ok(ReadFile {
                bytes: 2,
                changed: true
            })
        );
    }

    #[test]
    fn files_that_say_they_are_empty_are_read_as_far_as_they_go() {
        let tree = walk(Path::new("/proc/self/status")).unwrap();
        assert_eq!(tree.files[0].size, 0);
        let mut buffer = vec![0; tree.largest() as usize];
        let got = tree.read(&tree.files[0], &mut buffer).unwrap();
        assert!(got.bytes > 100 && !got.changed, "{got:?}");
        assert!(buffer.starts_with(b"Name:"));
        assert_eq!(
            tree.read(&tree.files[0], &mut buffer[..10]),
            Ok(ReadFile {
                bytes: 10,
                changed: true
            })
        );
    }

    #[test]
    fn files_over_four_gib_and_paths_over_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        fs::File::create(folder.path().join("sparse"))
            .unwrap()
            .set_len(lines::LARGEST + 1)
            .unwrap();
        fs::File::create(folder.path().join("just"))
            .unwrap()
            .set_len(lines::LARGEST)
            .unwrap();
        // Too deep for a path from the root, so it is made step by step.
        let name = "d".repeat(250);
        let mut here = open_directory(folder.path(), OFlags::empty()).unwrap();
        for _ in 0..17 {
            rustix::fs::mkdirat(&here, &name, Mode::RWXU).unwrap();
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            here = rustix::fs::openat(&here, &name, flags, Mode::empty()).unwrap();
        }
        let tree = walk(folder.path()).unwrap();
        assert_eq!(names(&tree), [b"just"]);
        assert_eq!(skipped(&tree), [("path-too-long", 1), ("too-large", 1)]);
    }

    /// Root may read everything, so as root the test starts itself again as a user who may not.
    #[test]
    fn what_may_not_be_read() {
        const ROOT: &str = "HEAPLAB_TEST_UNREADABLE";
        const NOBODY: u32 = 65534;
        if let Some(root) = std::env::var_os(ROOT) {
            return check_unreadable(Path::new(&root));
        }
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in ["closed-directory", "open-directory"] {
            fs::create_dir(root.join(name)).unwrap();
            fs::write(root.join(name).join("file"), "content").unwrap();
        }
        fs::write(root.join("closed"), "content").unwrap();
        let mode = |name: &str, mode| {
            fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode)).unwrap()
        };
        mode("", 0o755);
        mode("closed", 0o000);
        mode("closed-directory", 0o000);
        if is_root() {
            // The build folder may be closed to others.
            let program = root.join("open-directory/test-program");
            fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
            let output = Command::new(&program)
                .args([
                    "input::tree::tests::what_may_not_be_read",
                    "--exact",
                    "--test-threads=1",
                ])
                .env(ROOT, root)
                .current_dir("/")
                .uid(NOBODY)
                .gid(NOBODY)
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(
                output.status.success() && text.contains("1 passed"),
                "{text}"
            );
        } else {
            check_unreadable(root);
        }
        mode("closed-directory", 0o755); // so that it can be removed
    }

    fn check_unreadable(root: &Path) {
        let tree = walk(root).unwrap();
        assert!(names(&tree).contains(&&b"open-directory/file"[..]));
        assert_eq!(
            skipped(&tree),
            [("permission-denied", 1), ("unreadable-directory", 1)]
        );
        for name in ["closed", "closed-directory"] {
            let path = root.join(name);
            assert_eq!(walk(&path).unwrap_err(), WalkError::PermissionDenied(path));
        }
        let closed = Entry {
            path: "closed".into(),
            size: 7,
        };
        assert_eq!(
            tree.read(&closed, &mut [0; 8]),
            Err(SkipReason::PermissionDenied)
        );
    }
}
