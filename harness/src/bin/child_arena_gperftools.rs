//! The child of the arms `arena` and `arena-...`: this project's own arena allocator, with each generation's policy,
//! over gperftools' tcmalloc (`backing=tcmalloc-gperftools`).

use arena::{Arena, SizedArena};
use contract::Backing;

#[derive(Debug)]
enum Gperftools {}

impl Backing for Gperftools {
    const NAME: &'static str = "tcmalloc-gperftools";
    type Heap = tcmalloc_sys::Gperftools;
}

heaplab::child!(
    "arena" => Arena<Gperftools>,
    "arena-3.10" => Arena<Gperftools>,
    "arena-3.10-keep0" => Arena<Gperftools>,
    "arena-3.9" => Arena<Gperftools>,
    "arena-3.8" => Arena<Gperftools>,
    "arena-2.5" => Arena<Gperftools>,
    "arena-2.4" => Arena<Gperftools>,
    "arena+sized" => SizedArena<Gperftools>,
    "arena-3.10+sized" => SizedArena<Gperftools>,
    "arena-3.10-keep0+sized" => SizedArena<Gperftools>,
    "arena-3.9+sized" => SizedArena<Gperftools>,
    "arena-3.8+sized" => SizedArena<Gperftools>,
    "arena-2.5+sized" => SizedArena<Gperftools>,
    "arena-2.4+sized" => SizedArena<Gperftools>,
);
