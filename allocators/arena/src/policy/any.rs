//! Orders and address tests that are chosen at run time.

use super::{ByFreePools, GlobalPools, LastUsable, LinearSlide, Order, Policy};
use crate::address_map::AddressMap;
use crate::address_test::{AddressTest, PoolHeader, VectorWalk};
use crate::arena::{ArenaId, ArenaPtr, Table};
use crate::block::ClientPtr;
use crate::check::Fault;
use crate::os::Os;
use crate::pool::PoolPtr;

/// Which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderKind {
    /// [`GlobalPools`].
    Global,
    /// [`LinearSlide`].
    Slide,
    /// [`ByFreePools`].
    Constant,
    /// [`LastUsable`].
    Last,
}

/// Which address test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestKind {
    /// [`VectorWalk`].
    Walk,
    /// [`PoolHeader`], for arenas that may be gone.
    Header,
    /// [`PoolHeader`], for arenas that are never gone.
    Header24,
    /// [`AddressMap`].
    Radix,
}

/// Any of the orders.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a heap has one, and does not move it"
)]
#[expect(missing_docs, reason = "named as what they hold")]
pub enum AnyOrder {
    Global(GlobalPools),
    Slide(LinearSlide),
    Constant(ByFreePools),
    Last(LastUsable),
}

impl AnyOrder {
    /// The one that is asked for, before there is any arena.
    #[must_use]
    pub fn new(kind: OrderKind) -> AnyOrder {
        match kind {
            OrderKind::Global => AnyOrder::Global(GlobalPools::default()),
            OrderKind::Slide => AnyOrder::Slide(LinearSlide),
            OrderKind::Constant => AnyOrder::Constant(ByFreePools::default()),
            OrderKind::Last => AnyOrder::Last(LastUsable),
        }
    }
}

/// As in CPython 3.8 and later.
impl Default for AnyOrder {
    fn default() -> Self {
        AnyOrder::new(OrderKind::Constant)
    }
}

macro_rules! each_order {
    ($any:expr, $order:ident => $call:expr) => {
        match $any {
            AnyOrder::Global($order) => $call,
            AnyOrder::Slide($order) => $call,
            AnyOrder::Constant($order) => $call,
            AnyOrder::Last($order) => $call,
        }
    };
}

// SAFETY: as each of them.
unsafe impl Order for AnyOrder {
    fn added(&mut self, table: &mut Table, id: ArenaId) {
        each_order!(self, order => order.added(table, id));
    }

    fn take(&mut self, table: &mut Table) -> Option<PoolPtr> {
        each_order!(self, order => order.take(table))
    }

    fn give(&mut self, table: &mut Table, pool: PoolPtr, keep: u32) -> Option<ArenaId> {
        each_order!(self, order => order.give(table, pool, keep))
    }

    fn check(&self, table: &Table) -> Result<(), Fault> {
        each_order!(self, order => order.check(table))
    }
}

/// Any of the tests.
#[derive(Debug)]
#[expect(missing_docs, reason = "named as what they hold")]
pub enum AnyTest {
    Walk(VectorWalk),
    Header(PoolHeader),
    Header24(PoolHeader<false>),
    Radix(AddressMap),
}

impl AnyTest {
    /// The one that is asked for, before there is any arena; `None` if the backing refuses what it takes.
    #[must_use]
    pub fn new<O: Os>(kind: TestKind, os: &O, arena_bits: u32) -> Option<AnyTest> {
        Some(match kind {
            TestKind::Walk => AnyTest::Walk(VectorWalk),
            TestKind::Header => AnyTest::Header(PoolHeader),
            TestKind::Header24 => AnyTest::Header24(PoolHeader),
            TestKind::Radix => AnyTest::Radix(AddressMap::new(os, arena_bits)?),
        })
    }
}

macro_rules! each_test {
    ($any:expr, $test:ident => $call:expr) => {
        match $any {
            AnyTest::Walk($test) => $call,
            AnyTest::Header($test) => $call,
            AnyTest::Header24($test) => $call,
            AnyTest::Radix($test) => $call,
        }
    };
}

// SAFETY: as each of them.
unsafe impl AddressTest for AnyTest {
    /// By a radix tree, as in CPython 3.10 and later.
    fn open<O: Os>(os: &O, arena_bits: u32) -> Option<Self> {
        AnyTest::new(TestKind::Radix, os, arena_bits)
    }

    #[inline]
    unsafe fn has<P: Policy>(&self, p: ClientPtr, table: &Table, policy: &P) -> bool {
        // SAFETY: the caller's promise.
        each_test!(self, test => unsafe { AddressTest::has(test, p, table, policy) })
    }

    fn mark<O: Os>(&mut self, os: &O, arena: ArenaPtr, arena_bits: u32) -> Option<()> {
        each_test!(self, test => AddressTest::mark(test, os, arena, arena_bits))
    }

    fn unmark<O: Os>(&mut self, os: &O, arena: ArenaPtr, arena_bits: u32) {
        each_test!(self, test => AddressTest::unmark(test, os, arena, arena_bits));
    }

    fn map(&self) -> Option<&AddressMap> {
        each_test!(self, test => test.map())
    }

    unsafe fn release<O: Os>(&mut self, os: &O, arena_bits: u32) {
        // SAFETY: the caller's promise.
        each_test!(self, test => unsafe { AddressTest::release(test, os, arena_bits) });
    }

    fn check<P: Policy>(&self, table: &Table, policy: &P) -> Result<(), Fault> {
        each_test!(self, test => AddressTest::check(test, table, policy))
    }
}
