//! The child of the arms `name=path.so`: it links no allocator and runs on the one that LD_PRELOAD puts in. With
//! `--suite` it asks the behaviour suite instead of taking a trial.

use heaplab::child::{self, Held, own_heap::OwnHeap};
use preload::Preload;
use std::process::ExitCode;

#[global_allocator]
static OWN: OwnHeap = OwnHeap::new();

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some(child::suite::OPTION) {
        return child::suite::main::<Preload>("preload");
    }
    child::main(&[Held::new::<Preload>("preload")])
}
