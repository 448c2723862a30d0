//! The arm `tcmalloc-gperftools`: gperftools' tcmalloc, from Debian's static library, beside the C library's malloc
//! and not in its place.
//!
//! If the archive was missing when this was built, [`Gperftools`] is there all the same and answers
//! [`Refused::Unavailable`](contract::Refused::Unavailable) with the command that would change that.
#![warn(missing_docs)]

#[cfg(gperftools)]
mod ffi;
#[cfg(gperftools)]
mod linked;
#[cfg(not(gperftools))]
mod missing;

#[cfg(gperftools)]
pub use linked::Gperftools;
#[cfg(not(gperftools))]
pub use missing::Gperftools;
