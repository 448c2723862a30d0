//! Builds mimalloc v2 so that it can stand beside v3.
//!
//! libmimalloc-sys carries the sources of both and tells those who depend on it where the headers of v3 are; those of
//! v2 lie beside them. (Its feature `v2` is no way: features unify over a workspace, so it would replace v3
//! everywhere.) The one C file is compiled as libmimalloc-sys compiles it for release, whatever the profile, and every
//! global symbol gets the prefix `m2_`, because v3 defines the same names.

#[path = "../locked.rs"]
mod locked;

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const PREFIX: &str = "m2_";

fn main() {
    locked::tell("libmimalloc-sys");
    if let Err(why) = build() {
        println!(
            "cargo::error=mimalloc v2: {why}. Without it, leave the feature mimalloc-v2 of heaplab out"
        );
    }
}

/// Builds and links the renamed library, or says what is missing.
fn build() -> Result<(), String> {
    let source = source()?;
    println!("cargo::rerun-if-changed={}", source.display());
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let objects = cc::Build::new()
        .include(source.join("include"))
        .include(source.join("src"))
        .file(source.join("src/static.c"))
        .opt_level(3)
        .debug(false)
        .warnings(false)
        .flag_if_supported("-ftls-model=initial-exec")
        .define("MI_DEBUG", "0")
        .define("MI_BUILD_RELEASE", None)
        .define("NDEBUG", None)
        .try_compile_intermediates()
        .map_err(|why| format!("it does not compile ({why}): apt-get install gcc libc6-dev"))?;
    let [object] = &objects[..] else {
        return Err(format!("{} objects of one source", objects.len()));
    };

    let listed = run("nm", &["-g", "--defined-only", "--format=posix"], &[object])?;
    let renaming: String = listed
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(|name| format!("{name} {PREFIX}{name}\n"))
        .collect();
    let names = out.join("names");
    fs::write(&names, renaming).map_err(|error| format!("{}: {error}", names.display()))?;
    let renamed = out.join("renamed.o");
    let redefine = format!("--redefine-syms={}", names.display());
    run("objcopy", &[&redefine], &[object, &renamed])?;

    let library = out.join("libheaplab_mimalloc2.a");
    // `ar` adds to an archive that is there.
    if library.exists() {
        fs::remove_file(&library).map_err(|error| format!("{}: {error}", library.display()))?;
    }
    run("ar", &["crs"], &[&library, &renamed])?;
    println!("cargo::rustc-link-search=native={}", out.display());
    println!("cargo::rustc-link-lib=static=heaplab_mimalloc2");
    Ok(())
}

/// The folder of the v2 tree: beside that of v3, of which libmimalloc-sys tells the `include`.
fn source() -> Result<PathBuf, String> {
    let told = env::var_os("DEP_MIMALLOC_INCLUDE_DIR")
        .map(PathBuf::from)
        .ok_or("libmimalloc-sys does not say where its headers are")?;
    let version = told.parent().unwrap_or(Path::new(""));
    if version.file_name() != Some(OsStr::new("v3")) {
        return Err(format!(
            "libmimalloc-sys built {} and not v3: is its feature v2 switched on somewhere",
            version.display()
        ));
    }
    let v2 = version.with_file_name("v2");
    if v2.join("src/static.c").is_file() {
        Ok(v2)
    } else {
        Err(format!("{} holds no source", v2.display()))
    }
}

/// Runs one tool of the binutils and returns what it printed.
fn run(tool: &str, options: &[&str], files: &[&PathBuf]) -> Result<String, String> {
    let output = Command::new(tool)
        .args(options)
        .args(files)
        .output()
        .map_err(|error| format!("{tool} does not run ({error}): apt-get install binutils"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!(
            "{tool} refused the object ({})",
            said.lines().next().unwrap_or("no reason given")
        ))
    }
}
