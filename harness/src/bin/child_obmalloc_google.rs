//! The child of the four arms of CPython's obmalloc, over Google's TCMalloc (`backing=tcmalloc-google`).

use obmalloc::{AsIs, Backing, Classic, Eager, Obmalloc, OneMibEager};

enum Google {}

impl Backing for Google {
    const NAME: &'static str = "tcmalloc-google";
    type Heap = tcmalloc_google::TcmallocGoogle;
}

heaplab::child!(
    "obmalloc" => Obmalloc<AsIs, Google>,
    "obmalloc-1m-eager" => Obmalloc<OneMibEager, Google>,
    "obmalloc-classic" => Obmalloc<Classic, Google>,
    "obmalloc-eager" => Obmalloc<Eager, Google>,
);
