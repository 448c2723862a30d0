//! The child of the arms `arena` and `arena-...`: this project's own arena allocator, with each generation's policy,
//! over the C library or the model of 2007.

use arena::{Arena, SizedArena};
use contract::Backing;

#[derive(Debug)]
enum Model {}

impl Backing for Model {
    const NAME: &'static str = "tcmalloc-2007";
    type Heap = tcmalloc_2007::Tcmalloc2007;
}

heaplab::child!(
    "arena" => Arena<Model>,
    "arena-3.10" => Arena<Model>,
    "arena-3.10-keep0" => Arena<Model>,
    "arena-3.9" => Arena<Model>,
    "arena-3.8" => Arena<Model>,
    "arena-2.5" => Arena<Model>,
    "arena-2.4" => Arena<Model>,
    "arena+sized" => SizedArena<Model>,
    "arena-3.10+sized" => SizedArena<Model>,
    "arena-3.10-keep0+sized" => SizedArena<Model>,
    "arena-3.9+sized" => SizedArena<Model>,
    "arena-3.8+sized" => SizedArena<Model>,
    "arena-2.5+sized" => SizedArena<Model>,
    "arena-2.4+sized" => SizedArena<Model>,
);
