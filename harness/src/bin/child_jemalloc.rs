//! The child of the arm `jemalloc`.

heaplab::child!("jemalloc" => jemalloc::Jemalloc);
