//! The child of the arm `jemalloc-global`.

heaplab::child!("jemalloc-global" => jemalloc_global::JemallocGlobal);
