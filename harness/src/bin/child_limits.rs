//! The child of the arms `bump` and `null`: the lower bounds.

heaplab::child!("bump" => limits::Bump, "null" => limits::Null);
