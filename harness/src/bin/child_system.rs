//! The child of the arm `system`: the C library's malloc.

heaplab::child!("system" => system::System);
