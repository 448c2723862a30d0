//! What an allocator was observed to do, as it stands in files: the wire form of [`contract::suite::behaviour`].

use contract::suite::behaviour as observed;
use serde::{Deserialize, Serialize};

/// What one arm's heap does where allocators differ. Sizes and alignments are bytes; answers are in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Behaviour {
    /// `malloc(0)`: `null`, `own address` or `one address for all`.
    pub malloc_zero: String,
    /// `realloc(p, 0)`, with blocks of several sizes.
    pub realloc_zero: Vec<ToNothing>,
    /// `realloc(NULL, 100)`: `a block` or `null`; null where the arm has no entry point that may be called so.
    pub realloc_null: Option<String>,
    /// calloc of a product that overflows: `null` or `a block`.
    pub calloc_overflow: String,
    /// calloc where there was something else: `zero`, `zero, never reused`, or in how many blocks it was not; null where
    /// the heap keeps no contents.
    pub calloc_of_freed: Option<String>,
    /// errno after calls that cannot be served.
    pub refusals: Vec<Refusal>,
    /// errno after free: `kept`, or the first size at which it was changed, and to what.
    pub errno_of_free: String,
    /// Every power of two up to this one was served by the entry point for aligned blocks; 64 MiB is the last one asked.
    pub aligned_up_to: usize,
    /// The first request for an aligned block that was not served, in words.
    pub aligned_failure: Option<String>,
    /// By size of blocks, the largest power of two that divides every address seen.
    pub alignment: Vec<AlignmentSeen>,
    /// By size of blocks, the usable sizes told.
    pub usable: Vec<UsableTold>,
    /// A free that is told the size uses it.
    pub sized_free: bool,
    /// Free memory can be given back on request.
    pub trim: bool,
}

/// What realloc to no bytes did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToNothing {
    /// Bytes of the block.
    pub size: usize,
    /// `frees, null`, `a block`, or another answer in words.
    pub answer: String,
}

/// What a call that cannot be served left in errno.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// `malloc`, `calloc`, `realloc` or `aligned`.
    pub call: String,
    /// Bytes asked for.
    pub size: usize,
    /// `ENOMEM`, `untouched` or a number; null if it was not refused.
    pub errno: Option<String>,
}

/// How blocks of one size lie.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlignmentSeen {
    /// Bytes of the blocks.
    pub size: usize,
    /// Largest power of two that divides all their addresses.
    pub alignment: usize,
}

/// What the allocator says that blocks of one size can hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsableTold {
    /// Bytes asked for.
    pub size: usize,
    /// Smallest usable size of several blocks; null if it is not told.
    pub least: Option<usize>,
    /// Largest.
    pub most: Option<usize>,
}

impl From<observed::Behaviour> for Behaviour {
    fn from(seen: observed::Behaviour) -> Self {
        let in_words = |given: &observed::Given| given.to_string();
        Behaviour {
            malloc_zero: seen.malloc_zero.to_string(),
            realloc_zero: seen
                .realloc_zero
                .iter()
                .map(|(size, answer)| ToNothing {
                    size: *size,
                    answer: answer.to_string(),
                })
                .collect(),
            realloc_null: seen.realloc_null.as_ref().map(in_words),
            calloc_overflow: seen.calloc_overflow.to_string(),
            calloc_of_freed: seen.calloc_of_freed.map(|found| found.to_string()),
            refusals: seen
                .refusals
                .iter()
                .map(|refusal| Refusal {
                    call: refusal.call.to_owned(),
                    size: refusal.size,
                    errno: refusal.errno.map(|errno| errno.to_string()),
                })
                .collect(),
            errno_of_free: match seen.errno_of_free {
                None => "kept".to_owned(),
                Some((size, errno)) => format!("set to {errno} at {size} bytes"),
            },
            aligned_up_to: seen.aligned.up_to,
            aligned_failure: seen
                .aligned
                .first_failure
                .map(|failure| failure.to_string()),
            alignment: seen
                .alignment
                .iter()
                .map(|(size, alignment)| AlignmentSeen {
                    size: *size,
                    alignment: *alignment,
                })
                .collect(),
            usable: seen
                .usable
                .iter()
                .map(|(size, told)| UsableTold {
                    size: *size,
                    least: told.map(|(least, _)| least),
                    most: told.map(|(_, most)| most),
                })
                .collect(),
            sized_free: seen.sized_free,
            trim: seen.trim,
        }
    }
}
