use libtcmalloc_sys as _;
