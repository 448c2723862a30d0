//! The child of the four arms of CPython's obmalloc, over gperftools' tcmalloc (`backing=tcmalloc-gperftools`).

use obmalloc::{AsIs, Backing, Classic, Eager, Obmalloc, OneMibEager};

enum Gperftools {}

impl Backing for Gperftools {
    const NAME: &'static str = "tcmalloc-gperftools";
    type Heap = tcmalloc_sys::Gperftools;
}

heaplab::child!(
    "obmalloc" => Obmalloc<AsIs, Gperftools>,
    "obmalloc-1m-eager" => Obmalloc<OneMibEager, Gperftools>,
    "obmalloc-classic" => Obmalloc<Classic, Gperftools>,
    "obmalloc-eager" => Obmalloc<Eager, Gperftools>,
);
