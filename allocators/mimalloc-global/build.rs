//! Puts the version of the crate into the receipt, from the lock file and not typed.

#[path = "../locked.rs"]
mod locked;

fn main() {
    locked::tell("mimalloc");
}
