//! The child of the arm `tcmalloc-2007`: a model of the realloc policy of google-perftools <= 0.97.

heaplab::child!("tcmalloc-2007" => tcmalloc_2007::Tcmalloc2007);
