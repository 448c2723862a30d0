//! A test of this program once more, in a child under callgrind: what it counts of it.

use std::process::Command;

/// What was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    pub instructions: u64,
    /// Conditional branches that the simulated predictor guessed wrong, and indirect ones whose target it did.
    pub mispredictions: u64,
}

/// Runs the test named `test` with the variable set to that value. What is counted is everything, or with `inside` that
/// function and what it calls.
///
/// # Panics
/// If it fails, or there is no valgrind.
pub fn count(test: &str, (variable, value): (&str, &str), inside: Option<&str>) -> Counts {
    let this = std::env::current_exe().expect("the test's own program");
    let ran = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg("--branch-sim=yes")
        .args(inside.map(|function| format!("--toggle-collect={function}")))
        .arg(this)
        .args(["--exact", test, "--test-threads=1"])
        .env(variable, value)
        .output()
        .unwrap_or_else(|why| panic!("valgrind does not start ({why})\napt-get install valgrind"));
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{value}: {said}");
    let line = |name: &str| -> Vec<&str> {
        let mut found = said.lines().filter_map(|line| line.split_once(name));
        let (_, rest) = found
            .next()
            .unwrap_or_else(|| panic!("no {name} in {said}"));
        rest.split_whitespace().collect()
    };
    let (events, collected) = (line("Events    :"), line("Collected :"));
    let event = |name: &str| -> u64 {
        let at = events.iter().position(|event| *event == name);
        let at = at.unwrap_or_else(|| panic!("no {name} in {said}"));
        // Noughts at the end are left out.
        collected
            .get(at)
            .map_or(0, |count| count.parse().expect("a number"))
    };
    Counts {
        instructions: event("Ir"),
        mispredictions: event("Bcm") + event("Bim"),
    }
}
