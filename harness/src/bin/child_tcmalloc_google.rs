//! The child of the arm `tcmalloc-google`.

heaplab::child!("tcmalloc-google" => tcmalloc_google::TcmallocGoogle);
