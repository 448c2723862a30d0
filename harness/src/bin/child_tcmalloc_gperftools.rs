//! The child of the arm `tcmalloc-gperftools`.

heaplab::child!("tcmalloc-gperftools" => tcmalloc_sys::Gperftools);
