use tikv_jemalloc_sys as _;
