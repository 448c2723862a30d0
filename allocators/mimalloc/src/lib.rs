use libmimalloc_sys as _;
