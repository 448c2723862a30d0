//! The cases that the fuzzer kept, each a file of `tests/cases/`: one for each way through the code that no other shows.
//! `scripts/fuzz` says how they come here.

mod common;

use common::case::{self, Case, Which};
use common::stream::Step;
use std::fs;
use std::path::Path;

#[test]
fn every_kept_case() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|why| panic!("{}: {why}", folder.display()))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    let mut seen = Vec::new();
    for file in &files {
        // The last line of what is printed names the case that fails.
        println!("{}", file.display());
        let case = Case::of(&fs::read(file).expect("readable"));
        case.run();
        seen.push(case);
    }
    // An empty folder, or one that has gone stale, shows nothing.
    for policy in [
        Which::Python24,
        Which::Python25,
        Which::Python38,
        Which::Python39,
        Which::Python310,
        Which::Keep0,
    ] {
        assert!(seen.iter().any(|case| case.which == policy), "{policy:?}");
    }
    let tuned: Vec<_> = seen
        .iter()
        .filter_map(|case| match case.which {
            Which::Tuned(settings) => Some(settings),
            _ => None,
        })
        .collect();
    for order in case::ORDERS {
        assert!(tuned.iter().any(|one| one.order == order), "{order:?}");
    }
    for test in case::TESTS {
        assert!(tuned.iter().any(|one| one.test == test), "{test:?}");
    }
    let refuses = |case: &Case| {
        case.steps
            .iter()
            .any(|step| matches!(step, Step::Grant(..)))
    };
    assert!(seen.iter().any(refuses), "no refusal");
    assert!(seen.iter().any(|case| case.shift > 0), "no shifted arena");
}

/// The fuzzer's first find, within a second, under AddressSanitizer: the backing was asked by aligned_alloc for 278 bytes
/// at a multiple of 256, and C wants the size to be a multiple of the alignment. glibc does not mind, others return null.
/// memalign takes any size. (What shows it is `scripts/sanitize address`.)
#[test]
fn a_size_need_be_no_multiple_of_the_alignment() {
    let bytes = include_bytes!("cases/size-no-multiple-of-the-alignment");
    let case = Case::of(bytes);
    assert_eq!(case.steps, [Step::Aligned(256, 278)]);
    case.run();
}

/// What bytes mean is what it was when the cases were kept.
#[test]
fn bytes_mean_what_they_meant() {
    let bytes = [
        9, 4, 1, 8, 0, // 256 KiB, sliding, one OS page behind
        3, 63, 0, 9, // ten blocks of 64 bytes
        5, 200, 0xC1, 2, 15, 1, 200, 0, 14, 5, 0, 6, 99,
    ];
    let case = Case::of(&bytes);
    let Which::Tuned(settings) = case.which else {
        panic!("{case:?}");
    };
    assert_eq!((settings.arena, settings.pool), (256 << 10, 4096));
    assert_eq!(format!("{:?}", settings.order), "Slide");
    assert_eq!((settings.keep, case.shift), (0, 4096));
    let steps = [
        Step::Run(64, 10),
        Step::Resize(2, 0xC1C8 % 5000),
        Step::Grant(1, usize::MAX),
        Step::Aligned(64, 6),
    ];
    assert_eq!(case.steps, steps);
    case.run();
}
