//! The child of the arms `arena` and `arena-...`: this project's own arena allocator, with each generation's policy,
//! over Google's TCMalloc (`backing=tcmalloc-google`).

use arena::{Arena, SizedArena};
use contract::Backing;

#[derive(Debug)]
enum Google {}

impl Backing for Google {
    const NAME: &'static str = "tcmalloc-google";
    type Heap = tcmalloc_google::TcmallocGoogle;
}

heaplab::child!(
    "arena" => Arena<Google>,
    "arena-3.10" => Arena<Google>,
    "arena-3.10-keep0" => Arena<Google>,
    "arena-3.9" => Arena<Google>,
    "arena-3.8" => Arena<Google>,
    "arena-2.5" => Arena<Google>,
    "arena-2.4" => Arena<Google>,
    "arena+sized" => SizedArena<Google>,
    "arena-3.10+sized" => SizedArena<Google>,
    "arena-3.10-keep0+sized" => SizedArena<Google>,
    "arena-3.9+sized" => SizedArena<Google>,
    "arena-3.8+sized" => SizedArena<Google>,
    "arena-2.5+sized" => SizedArena<Google>,
    "arena-2.4+sized" => SizedArena<Google>,
);
