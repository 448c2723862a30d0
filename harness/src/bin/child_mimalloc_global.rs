//! The child of the arm `mimalloc-global`.

heaplab::child!("mimalloc-global" => mimalloc_global::MimallocGlobal);
