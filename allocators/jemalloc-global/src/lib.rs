//! The arm `jemalloc-global`: jemalloc 5 through tikv-jemallocator, as a Rust user gets it.
#![warn(missing_docs)]

/// jemalloc by both ways.
#[derive(Debug)]
pub struct Routes;

impl rust_global::Routes for Routes {
    type Alloc = tikv_jemallocator::Jemalloc;
    type Beneath = jemalloc::Jemalloc;
    const ALLOC: Self::Alloc = tikv_jemallocator::Jemalloc;
    const CRATE: &'static str = concat!("tikv-jemallocator ", env!("HEAPLAB_SYS_VERSION"));
}

/// jemalloc through `GlobalAlloc`.
pub type JemallocGlobal = rust_global::Global<Routes>;
