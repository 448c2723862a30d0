//! The rules, one function each. All blocks are given back, except where a rule found the heap broken: what such a
//! heap does with a free is anybody's guess.

use super::{Verdict, raw::*};
use crate::{Heap, shadow::needed_alignment};

/// The user's half of the address space is 2^47 bytes, so nothing of about that size can be, nor what is negative as a
/// signed number, nor what overflows when a header or an alignment is added.
const IMPOSSIBLE: [usize; 9] = [
    usize::MAX,
    usize::MAX - 1,
    usize::MAX - 15,
    usize::MAX - 4096,
    isize::MAX as usize + 1,
    isize::MAX as usize,
    isize::MAX as usize - 4096,
    1 << 47,
    (1 << 47) - 4096,
];

/// Sizes around the borders of everybody's size classes.
fn border_sizes() -> Vec<usize> {
    let mut sizes = vec![1, 2, 3, 7, 24, 40, 48, 96, 100, 1000, 3000];
    for power in [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192] {
        sizes.extend([power - 1, power, power + 1]);
    }
    // The largest small size of the tcmallocs, mimalloc's and glibc's large ones.
    sizes.extend([
        14_337, 32_767, 32_768, 32_769, 65_537, 131_073, 262_145, 1_048_577,
    ]);
    sizes
}

pub(super) fn no_bytes<H: Heap>(heap: &H) -> Verdict {
    let mut nulls = Vec::new();
    let mut live: Vec<*mut u8> = Vec::new();
    for (name, p) in [
        ("malloc(0)", malloc(heap, 0)),
        ("malloc(0)", malloc(heap, 0)),
        ("calloc(0, 8)", calloc(heap, 0, 8)),
        ("calloc(8, 0)", calloc(heap, 8, 0)),
    ] {
        if p.is_null() {
            nulls.push(name);
        } else if live.contains(&p) && H::CAPABILITIES.contents {
            return Verdict::Broken(format!(
                "{name} returned an address twice while it was live"
            ));
        } else {
            live.push(p);
        }
    }
    for p in live {
        // SAFETY: live; not used afterwards.
        unsafe { free(heap, p) };
    }
    if nulls.is_empty() {
        Verdict::Held
    } else {
        Verdict::Differs(format!("null for {}", nulls.join(", ")))
    }
}

/// Every impossible request; `report` is called with its name for each, and errno after it.
fn ask_the_impossible<H: Heap>(
    heap: &H,
    mut report: impl FnMut(String, *mut u8, i32) -> Result<(), String>,
) -> Result<(), String> {
    for size in IMPOSSIBLE {
        set_errno(UNTOUCHED);
        let p = malloc(heap, size);
        report(format!("malloc({size:#x})"), p, errno())?;
        set_errno(UNTOUCHED);
        let p = calloc(heap, 1, size);
        report(format!("calloc(1, {size:#x})"), p, errno())?;
        set_errno(UNTOUCHED);
        let p = aligned(heap, 64, size);
        report(format!("aligned(64, {size:#x})"), p, errno())?;
    }
    Ok(())
}

pub(super) fn impossible_sizes<H: Heap>(heap: &H) -> Verdict {
    verdict(ask_the_impossible(heap, |call, p, _| {
        if p.is_null() {
            Ok(())
        } else {
            Err(format!("{call} returned {p:p}"))
        }
    }))
}

pub(super) fn refusal_sets_errno<H: Heap>(heap: &H) -> Verdict {
    let mut silent = Vec::new();
    let asked = ask_the_impossible(heap, |call, p, errno| {
        if p.is_null() && errno != libc::ENOMEM {
            silent.push(format!("{call} left {errno}"));
        }
        Ok(())
    });
    match (asked, silent.first()) {
        (Ok(()), None) => Verdict::Held,
        (Ok(()), Some(first)) => {
            Verdict::Differs(format!("{first}, as did {} others", silent.len() - 1))
        }
        (Err(how), _) => Verdict::Broken(how),
    }
}

pub(super) fn calloc_overflow<H: Heap>(heap: &H) -> Verdict {
    let half = 1usize << 32;
    let answer = [
        (half, half),
        (half + 1, half),
        (2, isize::MAX as usize + 1),
        (usize::MAX, 2),
        (3, usize::MAX / 2),
    ]
    .into_iter()
    .try_for_each(|(count, size)| {
        let p = calloc(heap, count, size);
        if p.is_null() {
            Ok(())
        } else {
            Err(format!("calloc({count:#x}, {size:#x}) returned {p:p}"))
        }
    });
    verdict(answer)
}

pub(super) fn failed_realloc<H: Heap>(heap: &H) -> Verdict {
    let ask = |size: usize, impossible: usize| -> Result<(), String> {
        let p = block(heap, size)?;
        // SAFETY: live, of `size` bytes; after the refusal it still is.
        unsafe {
            fill(p, 0, size, size);
            let q = realloc(heap, p, size, impossible);
            if !q.is_null() {
                return Err(format!(
                    "realloc from {size} to {impossible:#x} bytes returned {q:p}"
                ));
            }
            if let Some(offset) = damage(p, size, size) {
                return Err(format!(
                    "byte {offset} of {size} changed in a realloc to {impossible:#x} bytes that was refused"
                ));
            }
            free(heap, p);
        }
        Ok(())
    };
    let sizes = [1, 64, 1000, 5000, 40_000, 200_000];
    verdict(
        sizes
            .into_iter()
            .try_for_each(|size| IMPOSSIBLE.into_iter().try_for_each(|huge| ask(size, huge))),
    )
}

pub(super) fn free_keeps_errno<H: Heap>(heap: &H) -> Verdict {
    for size in [1, 100, 5000, 40_000, 300_000, 5 << 20] {
        let p = match block(heap, size) {
            Ok(p) => p,
            Err(how) => return Verdict::Broken(how),
        };
        set_errno(UNTOUCHED);
        // SAFETY: live; not used afterwards.
        unsafe { free(heap, p) };
        if errno() != UNTOUCHED {
            // POSIX asks for it since 2024, the C standard does not.
            return Verdict::Differs(format!("freeing {size} bytes set it to {}", errno()));
        }
    }
    Verdict::Held
}

pub(super) fn natural_alignment<H: Heap>(heap: &H) -> Verdict {
    let mut live = Vec::new();
    // (size, alignment) for sizes that got less than 16, the strictest of any C type.
    let mut less: Vec<usize> = Vec::new();
    for size in 1..=4096 {
        for _ in 0..3 {
            let p = match block(heap, size) {
                Ok(p) => p,
                Err(how) => return Verdict::Broken(how),
            };
            let needed = needed_alignment(size);
            if p.addr() % needed != 0 {
                return Verdict::Broken(format!(
                    "{size} bytes at {p:p}, which is not a multiple of {needed}"
                ));
            }
            if p.addr() % 16 != 0 && less.last() != Some(&size) {
                less.push(size);
            }
            live.push(p);
        }
    }
    for p in live {
        // SAFETY: live; not used afterwards.
        unsafe { free(heap, p) };
    }
    match (less.first(), less.last()) {
        (Some(first), Some(last)) => Verdict::Differs(format!(
            "{} sizes from {first} to {last} bytes get less than 16",
            less.len()
        )),
        _ => Verdict::Held,
    }
}

/// Powers of two up to 64 KiB, each with sizes around it.
fn alignments_and_sizes() -> impl Iterator<Item = (usize, usize)> {
    (0..=16).map(|shift| 1usize << shift).flat_map(|align| {
        [
            1,
            7,
            100,
            align.saturating_sub(1).max(1),
            align,
            align + 1,
            3 * align,
            50_000,
        ]
        .map(|size| (align, size))
    })
}

pub(super) fn asked_alignment<H: Heap>(heap: &H) -> Verdict {
    let mut live = Vec::new();
    for (tag, (align, size)) in alignments_and_sizes().enumerate() {
        let p = aligned(heap, align, size);
        if p.is_null() {
            return Verdict::Broken(format!("aligned({align}, {size}) returned null"));
        }
        if p.addr() % align != 0 {
            return Verdict::Broken(format!("aligned({align}, {size}) returned {p:p}"));
        }
        // SAFETY: live, of `size` bytes.
        unsafe { fill(p, 0, size, tag) };
        live.push((p, align, size));
    }
    for (tag, (p, align, size)) in live.into_iter().enumerate() {
        // SAFETY: live, of `size` bytes; freed last.
        unsafe {
            if let Some(offset) = damage(p, size, tag) {
                return Verdict::Broken(format!(
                    "byte {offset} of aligned({align}, {size}) changed"
                ));
            }
            free(heap, p);
        }
    }
    Verdict::Held
}

pub(super) fn realloc_of_aligned<H: Heap>(heap: &H) -> Verdict {
    for (align, size) in alignments_and_sizes() {
        for new in [size.div_ceil(2), size + 1, 3 * size] {
            let p = aligned(heap, align, size);
            if p.is_null() {
                return Verdict::Broken(format!("aligned({align}, {size}) returned null"));
            }
            // SAFETY: live, of `size`, then of `new` bytes; freed last.
            unsafe {
                fill(p, 0, size, align);
                let q = realloc(heap, p, size, new);
                if q.is_null() {
                    return Verdict::Broken(format!(
                        "realloc of aligned({align}, {size}) to {new} returned null"
                    ));
                }
                if let Some(offset) = damage(q, size.min(new), align) {
                    return Verdict::Broken(format!(
                        "byte {offset} of aligned({align}, {size}) changed in a realloc to {new}"
                    ));
                }
                free(heap, q);
            }
        }
    }
    Verdict::Held
}

pub(super) fn calloc_zeroes<H: Heap>(heap: &H) -> Verdict {
    let ask = |size: usize| -> Result<(), String> {
        // Enough blocks that some of what is freed comes back.
        let rounds = if size > 10_000 { 4 } else { 32 };
        let dirtied: Vec<_> = (0..rounds)
            .map(|_| block(heap, size))
            .collect::<Result<_, _>>()?;
        // SAFETY: live, of `size` bytes; freed after.
        dirtied.into_iter().for_each(|p| unsafe {
            dirty(p, size);
            free(heap, p);
        });
        let mut live = Vec::new();
        for n in 0..rounds {
            // Both ways of saying the size.
            let p = if n % 2 == 0 {
                calloc(heap, 1, size)
            } else {
                calloc(heap, size, 1)
            };
            if p.is_null() {
                return Err(format!("calloc of {size} bytes returned null"));
            }
            // SAFETY: live, of `size` bytes.
            if let Some(offset) = unsafe { not_zero(p, size) } {
                return Err(format!("byte {offset} of calloc's {size} is not 0"));
            }
            live.push(p);
        }
        // SAFETY: live, of `size` bytes; freed after.
        live.into_iter().for_each(|p| unsafe {
            dirty(p, size);
            free(heap, p);
        });
        Ok(())
    };
    verdict(border_sizes().into_iter().try_for_each(ask))
}

pub(super) fn realloc_keeps_contents<H: Heap>(heap: &H) -> Verdict {
    let sizes = border_sizes();
    let ask = |from: usize, to: usize| -> Result<(), String> {
        let p = block(heap, from)?;
        // SAFETY: live, of `from`, then of `to` bytes; freed last.
        unsafe {
            fill(p, 0, from, from ^ to);
            let q = realloc(heap, p, from, to);
            if q.is_null() {
                return Err(format!("realloc from {from} to {to} bytes returned null"));
            }
            if let Some(offset) = damage(q, from.min(to), from ^ to) {
                return Err(format!(
                    "byte {offset} changed in a realloc from {from} to {to} bytes"
                ));
            }
            // What was added belongs to the block too.
            fill(q, from.min(to), to, from ^ to);
            if let Some(offset) = damage(q, to, from ^ to) {
                return Err(format!(
                    "byte {offset} does not keep what is written after a realloc from {from} to {to} bytes"
                ));
            }
            free(heap, q);
        }
        Ok(())
    };
    verdict(
        sizes
            .iter()
            .try_for_each(|from| sizes.iter().try_for_each(|to| ask(*from, *to))),
    )
}

pub(super) fn usable_is_usable<H: Heap>(heap: &H) -> Verdict {
    if !H::CAPABILITIES.usable {
        return Verdict::Differs("this heap does not tell".into());
    }
    let mut live: Vec<(*mut u8, usize, usize)> = Vec::new();
    let ask = |p: *mut u8, size: usize| -> Result<(*mut u8, usize, usize), String> {
        // SAFETY: live.
        match unsafe { heap.usable(p) } {
            None => Err(format!(
                "no answer for a block of {size} bytes, where one is promised"
            )),
            Some(usable) if usable < size => Err(format!("{usable} for a block of {size} bytes")),
            Some(usable) => Ok((p, size, usable)),
        }
    };
    let answer = border_sizes()
        .into_iter()
        .flat_map(|size| [size; 5])
        .try_for_each(|size| {
            let p = block(heap, size)?;
            live.push(ask(p, size)?);
            // And of a block that has grown.
            let old = size.div_ceil(2);
            let p = block(heap, old)?;
            // SAFETY: live, of `old` bytes.
            let q = unsafe { realloc(heap, p, old, size) };
            if q.is_null() {
                return Err(format!("realloc from {old} to {size} bytes returned null"));
            }
            live.push(ask(q, size)?);
            Ok(())
        });
    if let Err(how) = answer {
        return Verdict::Broken(how);
    }
    // Every block is written to its usable end before any is read: one that reaches into another is found out.
    for (tag, (p, _, usable)) in live.iter().enumerate() {
        // SAFETY: live; the heap says that it holds `usable` bytes, which is what is being asked.
        unsafe { fill(*p, 0, *usable, tag) };
    }
    for (tag, (p, size, usable)) in live.into_iter().enumerate() {
        // SAFETY: live, as above; freed last.
        unsafe {
            if let Some(offset) = damage(p, usable, tag) {
                return Verdict::Broken(format!(
                    "byte {offset} of the {usable} usable ones of a block of {size} belongs to another block too"
                ));
            }
            free(heap, p);
        }
    }
    Verdict::Held
}

pub(super) fn live_blocks_are_apart<H: Heap>(heap: &H) -> Verdict {
    let mut live = Vec::new();
    for n in 0..20_000usize {
        let size = if n % 100 == 99 {
            1 + (n * 7919) % 100_000
        } else {
            1 + (n * 7919) % 2048
        };
        match block(heap, size) {
            Ok(p) => live.push((p.addr(), size, p)),
            Err(how) => return Verdict::Broken(how),
        }
    }
    live.sort_unstable();
    let clash = live
        .windows(2)
        .find(|pair| pair[0].0 + pair[0].1 > pair[1].0);
    if let Some([(first, size, _), (second, other, _)]) = clash {
        return Verdict::Broken(format!(
            "{size} bytes at {first:#x} and {other} bytes at {second:#x} overlap"
        ));
    }
    for (_, _, p) in live {
        // SAFETY: live; not used afterwards.
        unsafe { free(heap, p) };
    }
    Verdict::Held
}

pub(super) fn sized_free<H: Heap>(heap: &H) -> Verdict {
    let ask = |size: usize| -> Result<(), String> {
        let mut live = vec![(block(heap, size)?, 1)];
        for old in [1, size.div_ceil(2), size + 1, 2 * size] {
            let p = block(heap, old)?;
            // SAFETY: live, of `old` bytes.
            let q = unsafe { realloc(heap, p, old, size) };
            if q.is_null() {
                return Err(format!("realloc from {old} to {size} bytes returned null"));
            }
            live.push((q, 1));
        }
        for align in [8, 16, 64, 4096] {
            let p = aligned(heap, align, size);
            if p.is_null() {
                return Err(format!("aligned({align}, {size}) returned null"));
            }
            live.push((p, align));
        }
        for (p, align) in live {
            // SAFETY: live, asked with `size` and `align` (1: not by `aligned`); not used afterwards.
            unsafe { heap.free_sized(p, size, align) };
        }
        Ok(())
    };
    if let Err(how) = border_sizes().into_iter().try_for_each(ask) {
        return Verdict::Broken(how);
    }
    // A block that went back into the wrong class shows when it is handed out again.
    match live_blocks_are_apart(heap) {
        Verdict::Held if !H::CAPABILITIES.sized => {
            Verdict::Differs("this heap does not use the size; it is a plain free".into())
        }
        verdict => verdict,
    }
}

pub(super) fn trim_is_harmless<H: Heap>(heap: &H) -> Verdict {
    let blocks: Result<Vec<_>, String> = border_sizes()
        .into_iter()
        .cycle()
        .take(500)
        .map(|size| Ok((block(heap, size)?, size)))
        .collect();
    let blocks = match blocks {
        Ok(blocks) => blocks,
        Err(how) => return Verdict::Broken(how),
    };
    let (freed, kept): (Vec<_>, Vec<_>) = blocks
        .into_iter()
        .enumerate()
        .partition(|(n, _)| n % 3 != 0);
    for (tag, (p, size)) in &kept {
        // SAFETY: live, of `size` bytes.
        unsafe { fill(*p, 0, *size, *tag) };
    }
    for (_, (p, _)) in freed {
        // SAFETY: live; not used afterwards.
        unsafe { free(heap, p) };
    }
    let trimmed = heap.trim();
    for (tag, (p, size)) in kept {
        // SAFETY: live, of `size` bytes; freed last.
        unsafe {
            if let Some(offset) = damage(p, size, tag) {
                return Verdict::Broken(format!("byte {offset} of a live block of {size} changed"));
            }
            free(heap, p);
        }
    }
    match (trimmed, H::CAPABILITIES.trim) {
        (true, true) => Verdict::Held,
        (false, false) => Verdict::Differs("this heap has no such call".into()),
        (trimmed, promised) => Verdict::Broken(format!(
            "trim returned {trimmed}, where the capability says {promised}"
        )),
    }
}
