//! Every workload under every arm in the driver's third mode, where nothing that the allocator does is believed.

mod common;

use common::{ask, obmalloc_missing, spec};
use heaplab::arms::{ARMS, Arm, Takes};
use heaplab::trial::{ChildReport, Outcome, TrialSpec};

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
    let modes = [
        "concat",
        "concat-lines",
        "concat-copy",
        "list",
        "vec2x",
        "chunks",
        "join",
    ];
    let walks = modes.map(|mode| {
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

/// Every arm that keeps contents, and once more with each word that one of its knobs takes.
fn arms() -> Vec<Arm> {
    let mut labels = Vec::new();
    for arm in ARMS.iter().filter(|arm| !arm.test_only && arm.contents) {
        labels.push(arm.id.to_owned());
        for knob in arm.knobs {
            if let Takes::Word(words) = knob.takes {
                let named = |word: &str| format!("{}:{}={word}", arm.id, knob.name);
                labels.extend(words.iter().map(|word| named(word.name)));
            }
        }
    }
    let arms = labels
        .iter()
        .map(|label| Arm::parse(label).expect("an arm"));
    arms.filter(|arm| arm.home().built).collect()
}

#[test]
fn every_arm_keeps_what_it_is_given() {
    let without_obmalloc = obmalloc_missing();
    for arm in arms() {
        for trial in small_trials(arm.def.id) {
            let trial = TrialSpec {
                knobs: arm.knobs.clone(),
                ..trial
            };
            let outcome = outcome(arm.home().child, &trial);
            if without_obmalloc && arm.def.feature == "obmalloc" {
                assert!(
                    matches!(outcome, Outcome::Unavailable { .. }),
                    "{outcome:?}"
                );
            } else {
                assert_eq!(outcome, Outcome::Ok, "{} {:?}", arm.label(), trial.params);
            }
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
