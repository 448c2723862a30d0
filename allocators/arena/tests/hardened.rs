//! What a hardened heap does not put up with, each in a process of its own, which must abort and say why.

use arena::heap::Heap;
use arena::os::Libc;
use arena::policy::{Policy, Python24, Python39, Python310};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

/// Says which mistake the child makes.
const MISTAKE: &str = "HEAPLAB_ARENA_MISTAKE";

/// The mistakes, and what is said of them.
const MISTAKES: &[(&str, &str)] = &[
    ("freed twice", "double free"),
    ("freed twice, others in between", "double free"),
    ("freed twice, the last of its pool", "double free"),
    ("reallocated after it was freed", "double free"),
    ("never handed out, but next", "double free"),
    ("inside of a block", "not a block"),
    ("a pool's header", "not a block"),
    ("a virgin block", "not a block"),
    ("a pool not yet carved", "not a block"),
    ("written to after it was freed", "smashed free list"),
    (
        "written to so that the list is a circle",
        "smashed free list",
    ),
    (
        "written to in a pool that became empty",
        "smashed free list",
    ),
    (
        "freed with a size that pools do not serve",
        "a size that it has not",
    ),
    (
        "the backing's, freed with a size of pools",
        "a size that it has not",
    ),
    ("freed twice, with its size", "double free"),
];

/// Makes it.
fn make<P: Policy>(mistake: &str, policy: P) {
    let mut heap = Heap::new(Libc::default(), policy).expect("memory");
    let [a, b, c] = [(); 3].map(|()| heap.malloc(64));
    // SAFETY: none of this is sound, which is what it is about: the heap is to see it before anything comes of it. All
    // that is written to lies in an arena that is held.
    unsafe {
        match mistake {
            "freed twice" => {
                heap.free(a);
                heap.free(a);
            }
            "freed twice, others in between" => {
                heap.free(a);
                heap.free(b);
                heap.free(a);
            }
            "freed twice, the last of its pool" => {
                // The other pool keeps the arena.
                heap.malloc(32);
                for p in [a, b, c, c] {
                    heap.free(p);
                }
            }
            "reallocated after it was freed" => {
                heap.free(b);
                heap.realloc(b, 200);
            }
            "never handed out, but next" => heap.free(c.add(64)),
            "inside of a block" => heap.free(b.add(16)),
            "a pool's header" => heap.free(a.sub(48)),
            "a virgin block" => heap.free(a.add(64 * 10)),
            "a pool not yet carved" => heap.free(a.add(heap.policy().pool_size())),
            "written to after it was freed" => {
                heap.free(b);
                b.cast::<usize>().write(0x1234_5678);
                heap.malloc(64);
            }
            "written to so that the list is a circle" => {
                heap.free(a);
                heap.free(b);
                a.cast::<*mut u8>().write(b);
                heap.malloc(64);
            }
            "written to in a pool that became empty" => {
                heap.malloc(32);
                for p in [a, b, c] {
                    heap.free(p);
                }
                b.write_bytes(0x41, 64);
                heap.malloc(64);
            }
            "freed with a size that pools do not serve" => heap.free_sized(a, 513),
            "the backing's, freed with a size of pools" => {
                let large = heap.malloc(1000);
                heap.free_sized(large, 100);
            }
            "freed twice, with its size" => {
                heap.free_sized(a, 64);
                heap.free_sized(a, 64);
            }
            _ => panic!("no such mistake: {mistake}"),
        }
    }
    // The rest of the process is no concern of this heap any more.
    std::process::exit(0);
}

#[test]
fn mistakes_abort_with_a_message() {
    if let Ok(mistake) = std::env::var(MISTAKE) {
        match mistake.split_once(": ") {
            Some(("2.4", mistake)) => make(mistake, Python24),
            Some(("3.9", mistake)) => make(mistake, Python39),
            Some(("3.10", mistake)) => make(mistake, Python310::default()),
            _ => panic!("{mistake}"),
        }
    }
    let this = std::env::current_exe().expect("the test's own program");
    for policy in ["2.4", "3.9", "3.10"] {
        for (mistake, said) in MISTAKES {
            let child = Command::new(&this)
                .args(["--exact", "mistakes_abort_with_a_message", "--nocapture"])
                .env(MISTAKE, format!("{policy}: {mistake}"))
                .output()
                .expect("a child");
            let errors = String::from_utf8_lossy(&child.stderr);
            assert_eq!(
                child.status.signal(),
                Some(libc::SIGABRT),
                "{policy}: {mistake}: {:?} {errors}",
                child.status
            );
            let line = errors.lines().find(|line| line.starts_with("arena: "));
            assert!(
                line.is_some_and(|line| line.contains(said)),
                "{policy}: {mistake}: {errors}"
            );
        }
    }
}

/// And what is no mistake is put up with.
#[test]
fn a_hardened_heap_does_what_any_heap_does() {
    let mut heap = Heap::new(Libc::default(), Python310::default()).expect("memory");
    let mut live: Vec<*mut u8> = Vec::new();
    for n in 0..50_000usize {
        if n % 3 == 2 {
            // SAFETY: live, and not kept.
            unsafe { heap.free(live.swap_remove(n * 7 % live.len())) };
        } else {
            live.push(heap.malloc(n * 13 % 700));
        }
    }
    for p in live {
        // SAFETY: live, each once.
        unsafe { heap.free(p) };
    }
    assert_eq!(heap.check(), Ok(()));
    assert_eq!(heap.stats().bytes.allocated, 0);
}
