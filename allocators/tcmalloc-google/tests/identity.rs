//! The arm is Google's TCMalloc, with its per-CPU caches on and its sampling interval read back.
//!
//! The caches need an environment variable from before the process starts, so the tests about them run in a copy of
//! this program that has it.

use contract::suite::{alone, identity};
use contract::{Arm, Heap, Refused};
use std::process::Command;
use tcmalloc_google::TcmallocGoogle;

const TUNABLES: (&str, &str) = ("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
/// Set in the copy, which therefore starts no further one.
const COPY: &str = "HEAPLAB_TEST_COPY";

/// Runs the test `name` of this program again with glibc's rseq off; true in the copy itself.
fn in_copy(name: &str) -> bool {
    if std::env::var_os(COPY).is_some() {
        return true;
    }
    let this = std::env::current_exe().expect("a path of this program");
    let copy = Command::new(this)
        .args(["--exact", name, "--nocapture"])
        .env(TUNABLES.0, TUNABLES.1)
        .env(COPY, "1")
        .output()
        .expect("the copy starts");
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&copy.stdout),
        String::from_utf8_lossy(&copy.stderr)
    );
    assert!(
        copy.status.success() && said.contains("1 passed"),
        "in the copy:\n{said}"
    );
    false
}

fn glibc() -> u64 {
    // SAFETY: no preconditions.
    let info = unsafe { libc::mallinfo2() };
    (info.uordblks + info.hblkhd) as u64
}

fn fact(heap: &TcmallocGoogle, name: &str) -> String {
    let receipt = heap.receipt();
    receipt
        .facts
        .into_iter()
        .find(|(known, _)| known == name)
        .expect("a fact of that name")
        .1
}

#[test]
fn its_own_books_see_the_blocks_and_glibcs_do_not() {
    if in_copy("its_own_books_see_the_blocks_and_glibcs_do_not") {
        let _turn = alone();
        let heap = TcmallocGoogle::open("tcmalloc-google", &[]).expect("the arm opens");
        let found = identity(
            &heap,
            |heap| heap.stats().allocated.expect("a figure"),
            glibc,
        )
        .expect("blocks");
        assert!(found.own_saw_them() && found.foreign_did_not(), "{found}");
    }
}

#[test]
fn with_glibcs_rseq_off_the_per_cpu_caches_are_active() {
    if in_copy("with_glibcs_rseq_off_the_per_cpu_caches_are_active") {
        let _turn = alone();
        let heap = TcmallocGoogle::open("tcmalloc-google", &[]).expect("the arm opens");
        assert_eq!(fact(&heap, "GLIBC_TUNABLES"), TUNABLES.1);
        assert_eq!(fact(&heap, "per_cpu_caches"), "active");
    }
}

#[test]
fn the_default_sampling_interval_is_2_mib_and_0_switches_it_off() {
    if in_copy("the_default_sampling_interval_is_2_mib_and_0_switches_it_off") {
        let _turn = alone();
        let heap = TcmallocGoogle::open("tcmalloc-google", &[]).expect("the arm opens");
        assert_eq!(
            heap.receipt().knobs,
            [("sampling".to_string(), "2097152".to_string())]
        );
        let off = [("sampling".to_string(), "0".to_string())];
        let heap = TcmallocGoogle::open("tcmalloc-google", &off).expect("the arm opens");
        assert_eq!(heap.receipt().knobs, off);
    }
}

#[test]
fn a_knob_that_it_does_not_have_is_refused() {
    let _turn = alone();
    for wrong in [
        ("sampling", "-1"),
        ("sampling", "18446744073709551615"),
        ("sample", "0"),
    ] {
        let knobs = [(wrong.0.to_string(), wrong.1.to_string())];
        assert!(
            matches!(
                TcmallocGoogle::open("tcmalloc-google", &knobs),
                Err(Refused::Knob(_))
            ),
            "{wrong:?}"
        );
    }
}

#[test]
fn the_version_is_the_locked_one() {
    let _turn = alone();
    let lock = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock"))
        .expect("a lock file");
    let mut lines = lock
        .lines()
        .skip_while(|line| *line != "name = \"libtcmalloc-sys\"");
    let version = lines
        .nth(1)
        .and_then(|line| line.strip_prefix("version = "))
        .expect("a version")
        .trim_matches('"');
    let heap = TcmallocGoogle::open("tcmalloc-google", &[]).expect("the arm opens");
    assert!(
        heap.receipt()
            .version
            .starts_with(&format!("libtcmalloc-sys {version} (")),
        "{}",
        heap.receipt().version
    );
}
