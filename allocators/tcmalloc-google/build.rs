//! Puts the version of the -sys crate into the receipt, from the lock file and not typed.

#[path = "../locked.rs"]
mod locked;

fn main() {
    let version = locked::tell("libtcmalloc-sys");
    // The library has no version at run time; what is known is the month of the tree in one version of the crate.
    let tree = if version == "0.1.14" {
        "June 2025"
    } else {
        "date unknown"
    };
    println!("cargo::rustc-env=HEAPLAB_TREE={tree}");
}
