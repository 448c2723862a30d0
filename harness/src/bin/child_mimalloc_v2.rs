//! The child of the arm `mimalloc-v2`.

heaplab::child!("mimalloc-v2" => mimalloc2_sys::MimallocV2);
