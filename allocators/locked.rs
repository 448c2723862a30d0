//! Used by build scripts: the version that the lock file pins for a crate.
//!
//! A -sys crate that wraps a C library without a version of its own is named in receipts by its crate version, and
//! a typed one would go stale unseen.

use std::path::{Path, PathBuf};

/// Sets the environment variable `HEAPLAB_SYS_VERSION` for the crate that is being built to the locked version of
/// `krate`.
///
/// # Panics
/// If there is no lock file above the manifest, or it has no such crate or several: the build stops, with the reason.
pub fn tell(krate: &str) -> String {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let lock = lock_above(Path::new(&manifest)).expect("a Cargo.lock in a folder above this crate");
    println!("cargo::rerun-if-changed={}", lock.display());
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../locked.rs");
    let text = std::fs::read_to_string(&lock).expect("Cargo.lock is readable");
    let heading = format!("name = \"{krate}\"");
    let versions: Vec<&str> = text
        .split("[[package]]")
        .filter(|package| package.lines().any(|line| line == heading))
        // A crate of this workspace, which has no source, may bear the same name.
        .filter(|package| package.contains("\nsource = "))
        .filter_map(|package| {
            package
                .lines()
                .find_map(|line| line.strip_prefix("version = "))
        })
        .map(|version| version.trim_matches('"'))
        .collect();
    let [version] = versions[..] else {
        panic!(
            "Cargo.lock pins {} versions of {krate}, one was expected",
            versions.len()
        );
    };
    println!("cargo::rustc-env=HEAPLAB_SYS_VERSION={version}");
    version.to_string()
}

fn lock_above(folder: &Path) -> Option<PathBuf> {
    folder
        .ancestors()
        .map(|folder| folder.join("Cargo.lock"))
        .find(|lock| lock.is_file())
}
