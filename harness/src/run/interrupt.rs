//! Ctrl-C and kill: the run stops after the trial in flight has been killed, and the folder stays usable.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on the signals are noted instead of ending the process. A file-size limit is not a reason to die either:
/// the write fails and says so.
///
/// # Errors
/// If a handler cannot be installed.
pub fn listen() -> io::Result<()> {
    let asked = ASKED.get_or_init(|| Arc::new(AtomicBool::new(false)));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register(signal, Arc::clone(asked))?;
    }
    flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    Ok(())
}

/// Whether the user has asked to stop.
pub fn asked() -> bool {
    ASKED
        .get()
        .is_some_and(|asked| asked.load(Ordering::Relaxed))
}
