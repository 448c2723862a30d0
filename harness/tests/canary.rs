//! Every workload under every arm in the driver's third mode, where nothing that the allocator does is believed.

mod common;

use common::{ask, spec};
use heaplab::arms::ARMS;
use heaplab::record::Outcome;
use heaplab::trial::{ChildReport, TrialSpec};

fn outcome(child: &str, spec: &TrialSpec) -> Outcome {
    let output = ask(child, &serde_json::to_vec(spec).expect("JSON"));
    let report: ChildReport = serde_json::from_slice(&output.stdout).expect("a report");
    report.outcome
}

/// Every mode and shape, small: the mirror of what was written is compared at every resize and free.
fn small_trials(arm: &str) -> Vec<TrialSpec> {
    let verify = |spec| TrialSpec {
        verify: true,
        ..spec
    };
    let walks = ["concat", "concat-copy", "list", "vec2x", "chunks", "join"].map(|mode| {
        spec(
            arm,
            "walker",
            &[("mode", mode), ("corpus", "text"), ("size", "100KiB")],
        )
    });
    let growths = ["one", "two", "pinned"].map(|shape| {
        spec(
            arm,
            "growth",
            &[("shape", shape), ("size", "150KiB"), ("step", "70")],
        )
    });
    walks.into_iter().chain(growths).map(verify).collect()
}

#[test]
fn every_arm_keeps_what_it_is_given() {
    for arm in ARMS
        .iter()
        .filter(|arm| arm.built && !arm.test_only && arm.contents)
    {
        for trial in small_trials(arm.id) {
            assert_eq!(
                outcome(arm.child, &trial),
                Outcome::Ok,
                "{} {:?}",
                arm.id,
                trial.params
            );
        }
    }
}

#[test]
fn a_flipped_byte_is_found_where_it_happens() {
    match outcome("child_faulty", &small_trials("faulty-flip")[0]) {
        Outcome::Failed {
            signal: None,
            message,
        } => {
            assert!(message.contains("realloc"), "{message}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_keeps_no_contents_cannot_be_verified() {
    match outcome("child_limits", &small_trials("null")[0]) {
        Outcome::Unavailable { why } => assert!(why.contains("no contents"), "{why}"),
        other => panic!("{other:?}"),
    }
}
