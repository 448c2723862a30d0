//! Streams of operations: what programs do to a heap, and what is hard on one.

/// One operation. Blocks are named by slots.
#[derive(Debug, Clone, Copy)]
pub enum Op {
    /// A block of so many bytes into an empty slot.
    Malloc(usize, usize),
    /// The same of zero bytes: so many, of such a size.
    Calloc(usize, usize, usize),
    /// The slot's block becomes one of so many bytes.
    Realloc(usize, usize),
    /// The slot's block goes.
    Free(usize),
}

/// What the sizes and counts of a stream are made for.
#[derive(Debug, Clone, Copy)]
pub struct Geometry {
    /// Blocks of 512 bytes in an arena.
    pub arena: usize,
    /// Blocks of 512 bytes in a pool.
    pub pool: usize,
    /// How many times as many blocks as with arenas of 256 KiB.
    pub scale: usize,
}

/// SplitMix64: small, and the same everywhere.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Less than `n`.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// 1 to 512 bytes, small ones more often; now and then none, or more than blocks serve.
    fn size(&mut self) -> usize {
        match self.below(64) {
            0 => 0,
            1 => 513 + self.below(3000),
            2..=20 => 1 + self.below(64),
            _ => 1 + self.below(512),
        }
    }
}

/// Where operations go; it says when there have been enough.
pub type Sink<'a> = dyn FnMut(Op) -> bool + 'a;

/// A stream: goes round and round until the sink has had enough.
pub type Stream = fn(&mut Random, Geometry, &mut Sink);

/// All of them.
pub const STREAMS: &[(&str, Stream)] = &[
    ("random", random),
    ("fifo", fifo),
    ("stack", stack),
    ("batch", batch),
    ("size-shift", size_shift),
    ("every-nth", every_nth),
    ("arena-edge", arena_edge),
    ("realloc-heavy", realloc_heavy),
];

/// Any block goes, any size comes.
fn random(random: &mut Random, geometry: Geometry, sink: &mut Sink) {
    let mut live = vec![false; 5000 * geometry.scale];
    loop {
        let slot = random.below(live.len());
        let op = match (live[slot], random.below(16)) {
            (false, 0) => Op::Calloc(slot, random.below(20), random.below(40)),
            (false, _) => Op::Malloc(slot, random.size()),
            (true, _) => Op::Free(slot),
        };
        live[slot] = !live[slot];
        if sink(op) {
            return;
        }
    }
}

/// The oldest block goes, a new one comes; every now and then the queue runs empty.
fn fifo(random: &mut Random, geometry: Geometry, sink: &mut Sink) {
    let most = 4000 * geometry.scale;
    let (mut first, mut next) = (0usize, 0usize);
    let mut draining = false;
    loop {
        let count = next - first;
        let op = if draining || count == most {
            first += 1;
            Op::Free((first - 1) % most)
        } else {
            next += 1;
            Op::Malloc((next - 1) % most, random.size())
        };
        if count == 0 {
            draining = false;
        } else if random.below(30_000) == 0 {
            draining = true;
        }
        if sink(op) {
            return;
        }
        if next == first {
            draining = false;
        }
    }
}

/// Pushes and pops in runs.
fn stack(random: &mut Random, geometry: Geometry, sink: &mut Sink) {
    let mut depth = 0;
    loop {
        let run = 1 + random.below(3000 * geometry.scale);
        let push = depth == 0 || random.below(2) == 0;
        let size = 1 + random.below(512);
        for _ in 0..run {
            let op = if push {
                depth += 1;
                let mixed = random.below(4) == 0;
                Op::Malloc(depth - 1, if mixed { random.size() } else { size })
            } else {
                depth -= 1;
                Op::Free(depth)
            };
            if sink(op) {
                return;
            }
            if !push && depth == 0 || push && depth == 9000 * geometry.scale {
                break;
            }
        }
        // No deeper than there are slots.
        while depth > 8000 * geometry.scale {
            depth -= 1;
            if sink(Op::Free(depth)) {
                return;
            }
        }
    }
}

/// Shuffles.
fn shuffle(random: &mut Random, items: &mut [usize]) {
    for i in (1..items.len()).rev() {
        items.swap(i, random.below(i + 1));
    }
}

/// Many come, then all go: in order, backwards, or as chance has it.
fn batch(random: &mut Random, geometry: Geometry, sink: &mut Sink) {
    loop {
        let mut slots: Vec<usize> = (0..6000 * geometry.scale).collect();
        for slot in &slots {
            if sink(Op::Malloc(*slot, random.size())) {
                return;
            }
        }
        match random.below(3) {
            0 => {}
            1 => slots.reverse(),
            _ => shuffle(random, &mut slots),
        }
        for slot in slots {
            if sink(Op::Free(slot)) {
                return;
            }
        }
    }
}

/// All but every `nth` go. Returns whether the sink has had enough, and who stayed.
fn thin(slots: &[usize], nth: usize, sink: &mut Sink) -> (bool, Vec<usize>) {
    let mut left = Vec::new();
    for (index, slot) in slots.iter().enumerate() {
        if index % nth == 0 {
            left.push(*slot);
        } else if sink(Op::Free(*slot)) {
            return (true, left);
        }
    }
    (false, left)
}

/// Blocks of 64 bytes, all but every 8th freed; then as many bytes in blocks of 96; or the other way round.
fn size_shift(random: &mut Random, geometry: Geometry, sink: &mut Sink) {
    loop {
        let (from, to) = if random.below(2) == 0 {
            (64, 96)
        } else {
            (96, 64)
        };
        let first: Vec<usize> = (0..12_000 * geometry.scale).collect();
        for slot in &first {
            if sink(Op::Malloc(*slot, from)) {
                return;
            }
        }
        let (enough, mut left) = thin(&first, 8, sink);
        if enough {
            return;
        }
        let second = first.len()..first.len() + (first.len() - left.len()) * from / to;
        left.extend(second.clone());
        for slot in second {
            if sink(Op::Malloc(slot, to)) {
                return;
            }
        }
        shuffle(random, &mut left);
        for slot in left {
            if sink(Op::Free(slot)) {
                return;
            }
        }
    }
}

/// Long-lived blocks among short-lived ones: one in 4, 16 or 128 stays a while.
fn every_nth(random: &mut Random, geometry: Geometry, sink: &mut Sink) {
    loop {
        let nth = [4, 16, 128][random.below(3)];
        let size = [64, 512, 1 + random.below(512)][random.below(3)];
        let slots: Vec<usize> = (0..6000 * geometry.scale).collect();
        for slot in &slots {
            if sink(Op::Malloc(*slot, size)) {
                return;
            }
        }
        let (enough, left) = thin(&slots, nth, sink);
        if enough {
            return;
        }
        for slot in slots.iter().filter(|slot| *slot % nth != 0) {
            if sink(Op::Malloc(*slot, random.size())) {
                return;
            }
        }
        let others = slots.iter().filter(|slot| *slot % nth != 0);
        for slot in others.chain(&left) {
            if sink(Op::Free(*slot)) {
                return;
            }
        }
    }
}

/// To and fro over the edge of an arena, and whole pools freed here and there, so that arenas with equally many free
/// pools meet.
fn arena_edge(random: &mut Random, geometry: Geometry, sink: &mut Sink) {
    let slots = 12 * geometry.arena;
    let mut live = vec![false; slots];
    loop {
        let edge = (1 + random.below(10)) * geometry.arena;
        for (slot, live) in live.iter_mut().enumerate() {
            if *live != (slot < edge) {
                *live = slot < edge;
                let op = if *live {
                    Op::Malloc(slot, 512)
                } else {
                    Op::Free(slot)
                };
                if sink(op) {
                    return;
                }
            }
        }
        for _ in 0..200 {
            let by = 1 + random.below(2 * geometry.pool);
            for slot in edge..edge + by {
                if sink(Op::Malloc(slot, 512)) {
                    return;
                }
            }
            for slot in (edge..edge + by).rev() {
                if sink(Op::Free(slot)) {
                    return;
                }
            }
        }
        // One pool, then another, of every arena or of one: each becomes free, and its arena moves.
        for round in 0..6 * edge / geometry.arena {
            let arena = match round % 3 {
                0 => round / 3 % (edge / geometry.arena),
                _ => random.below(edge / geometry.arena),
            };
            let pools = geometry.arena / geometry.pool;
            let first = arena * geometry.arena + random.below(pools) * geometry.pool;
            for (slot, live) in live.iter_mut().enumerate().skip(first).take(geometry.pool) {
                if std::mem::take(live) && sink(Op::Free(slot)) {
                    return;
                }
            }
            if random.below(3) == 0 {
                let at = random.below(edge);
                for (slot, live) in live.iter_mut().enumerate().skip(at).take(geometry.pool) {
                    if !std::mem::replace(live, true) && sink(Op::Malloc(slot, 512)) {
                        return;
                    }
                }
            }
        }
    }
}

/// Blocks that grow, shrink, and cross the line to the backing, which they never cross back.
fn realloc_heavy(random: &mut Random, geometry: Geometry, sink: &mut Sink) {
    let mut sizes: Vec<Option<usize>> = vec![None; 2500 * geometry.scale];
    loop {
        let slot = random.below(sizes.len());
        let op = match (sizes[slot], random.below(8)) {
            (None, _) => {
                let size = 1 + random.below(512);
                sizes[slot] = Some(size);
                Op::Malloc(slot, size)
            }
            (Some(_), 0) => {
                sizes[slot] = None;
                Op::Free(slot)
            }
            (Some(size), how) => {
                let block = size.next_multiple_of(16);
                let new = match how {
                    1 => random.size(),
                    2 => size + size / 8 + 8,
                    // The borders of the rule: three quarters of the block, and the whole.
                    3 => block * 3 / 4 + random.below(2),
                    4 => block + random.below(2),
                    _ => (size + 16).saturating_sub(random.below(48)),
                };
                sizes[slot] = Some(new);
                Op::Realloc(slot, new)
            }
        };
        if sink(op) {
            return;
        }
    }
}
