//! For tests that look at or change their whole process: each starts itself again, alone in a fresh one.

use std::process::Command;

/// Runs `body`, the body of the test named `test` (its full path), in a process of its own.
///
/// # Panics
/// If it panics there, with all that it printed.
pub fn alone(test: &str, body: impl FnOnce()) {
    const ALONE: &str = "HEAPLAB_TEST_ALONE";
    if std::env::var_os(ALONE).is_some_and(|name| name == test) {
        return body();
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--test-threads=1"])
        .env(ALONE, test)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    // A name that matches no test would succeed as well, with nothing run.
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
}
