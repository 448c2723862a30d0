//! Compiles CPython's obmalloc.c, which `scripts/vendor-obmalloc` fetches, in four variants that live side by side.
//!
//! Two are the file's own settings or nearly so; where a variant needs what the file does not let a builder choose, a
//! changed copy is made in cargo's output folder. The file is pinned by its checksum, so the lines to change are known
//! by number; each must look as expected, or nothing is built.
//!
//! Without the file, or without a C compiler, the crate still builds, and its heaps answer that they are unavailable
//! and why.

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Folder that the file is fetched into, and the file. It is the folder that is watched: to watch a file that is
/// missing is to run at every build.
const FOLDER: &str = "../../vendor/obmalloc";
const FILE: &str = "obmalloc.c";
const SHA256: &str = "d4ff9cf055520f7582db7f9a6786944215ff017d2eda38d4e7f0ae16bc03615f";

/// As CPython's own configuration builds a release.
const FLAGS: [&str; 6] = ["-std=c11", "-O3", "-DNDEBUG", "-fwrapv", "-fPIC", "-w"];

/// One line of the file and what becomes of it.
struct Change {
    line: usize,
    /// The line in words, its white space squeezed.
    words: &'static [&'static str],
    /// These words leave it, and these come instead.
    replace: (&'static [&'static str], &'static [&'static str]),
}

/// Arenas of 2^18 bytes, where the file has 2^20 on every 64-bit machine.
const SMALL_ARENAS: Change = Change {
    line: 958,
    words: &["#define", "ARENA_BITS", "20", "/*", "1", "MiB", "*/"],
    replace: (&["20", "/*", "1", "MiB", "*/"], &["18"]),
};

/// An arena whose pools are all free goes back at once, even if it is the last usable one.
const EAGER: Change = Change {
    line: 2096,
    words: &[
        "if",
        "(nf",
        "==",
        "ao->ntotalpools",
        "&&",
        "ao->nextarena",
        "!=",
        "NULL)",
        "{",
    ],
    replace: (
        &["ao->ntotalpools", "&&", "ao->nextarena", "!=", "NULL)"],
        &["ao->ntotalpools)"],
    ),
};

struct Variant {
    name: &'static str,
    defines: &'static [&'static str],
    changes: &'static [Change],
}

const VARIANTS: [Variant; 4] = [
    Variant {
        name: "as_is",
        defines: &[],
        changes: &[],
    },
    Variant {
        name: "1m_eager",
        defines: &[],
        changes: &[EAGER],
    },
    // Without the radix tree the file itself chooses pools of 4 KiB.
    Variant {
        name: "classic",
        defines: &["-DWITH_PYMALLOC_RADIX_TREE=0"],
        changes: &[SMALL_ARENAS],
    },
    Variant {
        name: "eager",
        defines: &["-DWITH_PYMALLOC_RADIX_TREE=0"],
        changes: &[SMALL_ARENAS, EAGER],
    },
];

fn main() {
    for watched in ["build.rs", "c", FOLDER] {
        println!("cargo::rerun-if-changed={watched}");
    }
    println!("cargo::rerun-if-env-changed=CC");
    println!("cargo::rustc-check-cfg=cfg(obmalloc)");
    match source().and_then(|source| build(&source)) {
        Ok(compiler) => {
            println!("cargo::rustc-cfg=obmalloc");
            println!("cargo::rustc-env=HEAPLAB_OBMALLOC={compiler}");
            println!("cargo::rustc-env=HEAPLAB_OBMALLOC_SHA256={SHA256}");
        }
        Err(why) => println!("cargo::rustc-env=HEAPLAB_OBMALLOC={why}"),
    }
}

/// The file, if it is there and right.
fn source() -> Result<PathBuf, String> {
    const FETCH: &str = "scripts/vendor-obmalloc, then rebuild";
    let source = Path::new(FOLDER).join(FILE);
    let source = fs::canonicalize(&source)
        .map_err(|_| format!("vendor/obmalloc/{FILE} of CPython 3.11.2 is not there: {FETCH}"))?;
    let told = run("sha256sum", [&source])?;
    if told.split_whitespace().next() == Some(SHA256) {
        Ok(source)
    } else {
        Err(format!(
            "vendor/obmalloc/{FILE} is not that of CPython 3.11.2: {FETCH}"
        ))
    }
}

/// Builds and links the library; returns the compiler and how it was called.
fn build(source: &Path) -> Result<String, String> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let compiler = env::var_os("CC").unwrap_or_else(|| "gcc".into());
    let text =
        fs::read_to_string(source).map_err(|error| format!("{}: {error}", source.display()))?;
    let library = out.join("libheaplab_obmalloc.a");
    // `ar` adds to an archive that is there.
    if library.exists() {
        fs::remove_file(&library).map_err(|error| format!("{}: {error}", library.display()))?;
    }
    let mut members = vec!["crs".into(), library.into_os_string()];
    for variant in &VARIANTS {
        let file = if variant.changes.is_empty() {
            source.to_path_buf()
        } else {
            let copy = out.join(format!("{}.c", variant.name));
            fs::write(&copy, changed(&text, variant.changes)?)
                .map_err(|error| format!("{}: {error}", copy.display()))?;
            copy
        };
        let object = out.join(format!("{}.o", variant.name));
        let mut arguments: Vec<_> = FLAGS
            .iter()
            .chain(variant.defines)
            .map(|flag| (*flag).into())
            .collect();
        arguments.extend([
            "-Ic".into(),
            format!("-DHEAPLAB_PREFIX=heaplab_obm_{}_", variant.name).into(),
            format!("-DHEAPLAB_SOURCE=\"{}\"", file.display()).into(),
            "-c".into(),
            "c/unit.c".into(),
            "-o".into(),
            object.clone().into_os_string(),
        ]);
        run(&compiler, &arguments)?;
        members.push(object.into_os_string());
    }
    run("ar", &members)?;
    println!("cargo::rustc-link-search=native={}", out.display());
    println!("cargo::rustc-link-lib=static=heaplab_obmalloc");
    let version = run(&compiler, ["--version"])?;
    Ok(format!(
        "{}, {}",
        version.lines().next().unwrap_or_default(),
        FLAGS.join(" ")
    ))
}

/// The text with exactly these lines changed.
fn changed(text: &str, changes: &[Change]) -> Result<String, String> {
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    for change in changes {
        let line = lines
            .get_mut(change.line - 1)
            .ok_or_else(|| format!("obmalloc.c has no line {}", change.line))?;
        if !line.split_whitespace().eq(change.words.iter().copied()) {
            return Err(format!(
                "line {} of obmalloc.c is not the one to change",
                change.line
            ));
        }
        let words = change.words.join(" ");
        let (old, new) = change.replace;
        *line = words.replacen(&old.join(" "), &new.join(" "), 1);
    }
    let differing = text.lines().zip(&lines).filter(|(a, b)| a != b).count();
    if differing == changes.len() {
        Ok(lines.join("\n") + "\n")
    } else {
        Err(format!(
            "{differing} lines of obmalloc.c were changed, {} were meant to be",
            changes.len()
        ))
    }
}

/// Runs one tool and returns what it printed.
fn run<A: AsRef<OsStr>>(
    tool: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = A>,
) -> Result<String, String> {
    let tool = tool.as_ref();
    let shown = tool.to_string_lossy();
    let output = Command::new(tool).args(arguments).output().map_err(|error| {
        format!("{shown} does not run ({error}): apt-get install gcc binutils libc6-dev, then rebuild")
    })?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!(
            "{shown} could not build obmalloc.c ({}): scripts/setup, then rebuild",
            said.lines().next().unwrap_or("no reason given")
        ))
    }
}
