//! The arm `mimalloc-global`: mimalloc v3 through its crate, as a Rust user gets it.
#![warn(missing_docs)]

/// mimalloc by both ways.
#[derive(Debug)]
pub struct Routes;

impl rust_global::Routes for Routes {
    type Alloc = mimalloc_crate::MiMalloc;
    type Beneath = mimalloc::Mimalloc;
    const ALLOC: Self::Alloc = mimalloc_crate::MiMalloc;
    const CRATE: &'static str = concat!("mimalloc ", env!("HEAPLAB_SYS_VERSION"));
}

/// mimalloc through `GlobalAlloc`.
pub type MimallocGlobal = rust_global::Global<Routes>;
