//! The child of the four arms of CPython's obmalloc, over the C library or the model of 2007.

use obmalloc::{AsIs, Backing, Classic, Eager, Obmalloc, OneMibEager};

enum Model {}

impl Backing for Model {
    const NAME: &'static str = "tcmalloc-2007";
    type Heap = tcmalloc_2007::Tcmalloc2007;
}

heaplab::child!(
    "obmalloc" => Obmalloc<AsIs, Model>,
    "obmalloc-1m-eager" => Obmalloc<OneMibEager, Model>,
    "obmalloc-classic" => Obmalloc<Classic, Model>,
    "obmalloc-eager" => Obmalloc<Eager, Model>,
);
