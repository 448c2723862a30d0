//! Takes gperftools' static library, as Debian ships it, without letting it take over malloc.
//!
//! The archive defines `malloc`, `operator new` and so on, and whoever links it plainly runs on it. So all its objects
//! are joined into one, everything is made local but the `tc_*` and `MallocExtension_*` entry points (and three C++
//! ones for the release rate), and those get the prefix `heaplab_gp_`.
//!
//! `HEAPLAB_TCMALLOC_ARCHIVE` names another archive, e.g. a build of a newer release. Without any archive, or without
//! the binutils, the crate still builds, and its heap answers that it is unavailable and why.

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const PREFIX: &str = "heaplab_gp_";
const OVERRIDE: &str = "HEAPLAB_TCMALLOC_ARCHIVE";

/// C++ entry points that have no C form. gperftools 2.10 has them; another archive may not.
const RELEASE_RATE: [&str; 3] = [
    "_ZN15MallocExtension8instanceEv",
    "_ZN22TCMallocImplementation20GetMemoryReleaseRateEv",
    "_ZN22TCMallocImplementation20SetMemoryReleaseRateEd",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={OVERRIDE}");
    println!("cargo::rustc-check-cfg=cfg(gperftools, release_rate)");
    match archive()
        .and_then(|(archive, origin)| localise(&archive).map(|symbols| (origin, symbols)))
    {
        Ok((origin, symbols)) => {
            println!("cargo::rustc-env=HEAPLAB_GPERFTOOLS={origin}");
            println!("cargo::rustc-cfg=gperftools");
            if RELEASE_RATE
                .iter()
                .all(|wanted| symbols.iter().any(|symbol| symbol == wanted))
            {
                println!("cargo::rustc-cfg=release_rate");
            }
        }
        Err(why) => println!("cargo::rustc-env=HEAPLAB_GPERFTOOLS={why}"),
    }
}

/// The archive and, in words, where it comes from; or why there is none and what would change that.
fn archive() -> Result<(PathBuf, String), String> {
    if let Some(named) = env::var_os(OVERRIDE) {
        let named = PathBuf::from(named);
        watch(&named);
        return if named.is_file() {
            let origin = format!("the archive named by {OVERRIDE}: {}", named.display());
            Ok((named, origin))
        } else {
            Err(format!(
                "{OVERRIDE} names {}, which is not a file; name another or unset it, then rebuild",
                named.display()
            ))
        };
    }
    let machine = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let debian = PathBuf::from(format!(
        "/usr/lib/{machine}-linux-gnu/libtcmalloc_minimal.a"
    ));
    watch(&debian);
    if debian.is_file() {
        Ok((
            debian,
            "Debian's libtcmalloc_minimal.a (package libgoogle-perftools-dev)".into(),
        ))
    } else {
        Err(format!(
            "{} is not there: apt-get install libgoogle-perftools-dev, then rebuild",
            debian.display()
        ))
    }
}

/// Has cargo run this script again when the archive changes, comes or goes. For one that is missing that means its
/// folder: to watch a missing file is to run at every build. (No folder further up: cargo looks at every file below
/// the one it is given.)
fn watch(archive: &Path) {
    let folder = archive.parent();
    if let Some(there) = [Some(archive), folder]
        .into_iter()
        .flatten()
        .find(|path| path.exists())
    {
        println!("cargo::rerun-if-changed={}", there.display());
    }
}

/// Builds the library that is linked and returns the names of its entry points without the prefix.
fn localise(archive: &Path) -> Result<Vec<String>, String> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let joined = out.join("joined.o");
    let local = out.join("local.o");
    let names = out.join("names");
    let library = out.join("libheaplab_gperftools.a");

    // --force-group-allocation: else the C++ section groups keep their symbols global.
    run(
        "ld",
        ["-r", "--force-group-allocation", "-o"].map(OsStr::new),
        &[&joined],
        &["--whole-archive".as_ref(), archive.as_os_str()],
    )?;
    let mut keep = vec!["--wildcard".to_string()];
    keep.extend(
        ["tc_*", "MallocExtension_*"]
            .iter()
            .chain(&RELEASE_RATE)
            .map(|name| format!("--keep-global-symbol={name}")),
    );
    run("objcopy", keep, &[&joined, &local], &[])?;

    let listed = run(
        "nm",
        ["-g", "--defined-only", "--format=posix"],
        &[&local],
        &[],
    )?;
    let symbols: Vec<String> = listed
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(String::from)
        .collect();
    let renaming: String = symbols
        .iter()
        .map(|name| format!("{name} {PREFIX}{name}\n"))
        .collect();
    fs::write(&names, renaming).map_err(|error| format!("{}: {error}", names.display()))?;
    run(
        "objcopy",
        [format!("--redefine-syms={}", names.display())],
        &[&local],
        &[],
    )?;

    // `ar` adds to an archive that is there.
    if library.exists() {
        fs::remove_file(&library).map_err(|error| format!("{}: {error}", library.display()))?;
    }
    run("ar", ["crs"], &[&library, &local], &[])?;
    println!("cargo::rustc-link-search=native={}", out.display());
    println!("cargo::rustc-link-lib=static=heaplab_gperftools");
    println!("cargo::rustc-link-lib=stdc++");
    Ok(symbols)
}

/// Runs one tool of the binutils and returns what it printed.
fn run<A: AsRef<OsStr>>(
    tool: &str,
    options: impl IntoIterator<Item = A>,
    files: &[&PathBuf],
    rest: &[&OsStr],
) -> Result<String, String> {
    let output = Command::new(tool)
        .args(options)
        .args(files)
        .args(rest)
        .output()
        .map_err(|error| {
            format!("{tool} does not run ({error}): apt-get install binutils, then rebuild")
        })?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!(
            "{tool} refused the archive ({}); name another in {OVERRIDE}, then rebuild",
            said.lines().next().unwrap_or("no reason given")
        ))
    }
}
