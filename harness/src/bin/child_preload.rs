//! The child of the arms `name=path.so`: it links no allocator and runs on the one that LD_PRELOAD puts in.

heaplab::child!("preload" => preload::Preload);
