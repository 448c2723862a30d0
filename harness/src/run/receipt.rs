//! The receipt of an arm outside of any trial: its child is started, says who it holds, and ends.

use super::spawn::{self, Ended};
use crate::arms::Home;
use crate::trial::Receipt;
use std::path::Path;
use std::time::Duration;

/// It takes a few milliseconds under a sound allocator.
const LIMIT: Duration = Duration::from_secs(20);

/// The receipt that the child `home` among `children` gives of the arm `arm`, all knobs as they are by default.
///
/// # Errors
/// Why it gives none, in words, with the command that would change that where there is one.
pub fn ask(children: &Path, home: &Home, arm: &str) -> Result<Receipt, String> {
    super::startable(home, children)?;
    let child = children.join(home.child);
    let environment = home
        .environment
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    match spawn::version(&child, arm, &environment, LIMIT) {
        Ok(Ended::Reported(receipt)) if receipt.source_hash == crate::SOURCE_HASH => Ok(*receipt),
        Ok(Ended::Reported(_)) => Err("stale child: rebuild (cargo build --release)".to_owned()),
        Ok(Ended::Hung) => Err(format!(
            "{} gives no receipt within {} s",
            home.child,
            LIMIT.as_secs()
        )),
        Ok(Ended::Killed(signal, last)) => Err(super::killed(signal, &last)),
        Ok(Ended::Garbled(message)) => Err(message),
        Ok(Ended::Interrupted) => Err("interrupted".to_owned()),
        Err(why) => Err(format!("cannot start {}: {why}", home.child)),
    }
}
