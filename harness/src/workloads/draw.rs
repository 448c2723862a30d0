//! Numbers drawn by chance, before anything is measured.

use rand::RngCore;

/// A number below `below`, each equally likely but for 2^-40.
pub(super) fn draw(random: &mut impl RngCore, below: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(below)) >> 64) as u64
}
