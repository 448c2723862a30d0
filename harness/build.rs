//! Stamps the binaries with a hash of every source they are built from, so that a child left over from an older
//! build is refused ("stale child: rebuild") and never measured.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            sources(&path, into);
        } else if path
            .extension()
            .is_some_and(|end| ["rs", "toml", "c", "h"].iter().any(|known| end == *known))
        {
            into.push(path);
        }
    }
}

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = vec![
        root.join("Cargo.lock"),
        root.join("Cargo.toml"),
        root.join("harness/Cargo.toml"),
    ];
    for folder in ["allocators", "harness/src"] {
        println!("cargo:rerun-if-changed=../{folder}");
        sources(&root.join(folder), &mut files);
    }
    println!("cargo:rerun-if-changed=../Cargo.lock");
    println!("cargo:rerun-if-changed=../Cargo.toml");
    println!("cargo:rerun-if-changed=Cargo.toml");
    println!("cargo:rerun-if-changed=build.rs");
    files.sort();
    // FNV-1a: what is asked is "the same files or not", not resistance to an adversary.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for file in files {
        for byte in fs::read(&file).unwrap_or_default() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    println!("cargo:rustc-env=HEAPLAB_SOURCE_HASH={hash:016x}");
    println!(
        "cargo:rustc-env=HEAPLAB_PROFILE={}",
        std::env::var("PROFILE").unwrap_or_default()
    );
    println!("cargo:rustc-env=HEAPLAB_RUSTC={}", rustc_version());
}

fn rustc_version() -> String {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    std::process::Command::new(rustc)
        .arg("--version")
        .output()
        .ok()
        .and_then(|out| String::from_utf8(out.stdout).ok())
        .map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned())
}
