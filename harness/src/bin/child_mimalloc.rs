//! The child of the arm `mimalloc` (v3).

heaplab::child!("mimalloc" => mimalloc::Mimalloc);
