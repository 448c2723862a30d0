//! The order of the arms in each block.
//!
//! Whatever drifts while an experiment runs (temperature, frequency, page cache) must not fall on one arm, and what
//! an arm leaves behind for the next one should fall on all alike. So the blocks are rows of Latin squares: in a
//! square of `arms` rows each arm stands at each position exactly once, and in any part of a square at most once.
//! Hence positions are balanced within one for *any* number of blocks.
//!
//! The squares are those of Williams (1949), built from a zigzag 0, n-1, 1, n-2, ...: for an even number of arms
//! each arm follows each other arm equally often within one square; for an odd number within a square and its mirror,
//! which therefore alternate. Labels and the order of rows are drawn from the seed.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

/// For each of `blocks` blocks a permutation of the arm indices `0 .. arms`, decided by `seed` alone.
pub fn orders(arms: usize, blocks: u32, seed: u64) -> Vec<Vec<usize>> {
    let blocks = blocks as usize;
    if arms == 0 {
        return vec![Vec::new(); blocks];
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut out = Vec::with_capacity(blocks);
    let mut labels: Vec<usize> = (0..arms).collect();
    let mut mirrored = false;
    while out.len() < blocks {
        // A mirror completes the carry-over balance of the square before it, so it keeps that square's labels.
        if !mirrored {
            labels.shuffle(&mut rng);
        }
        let mut rows: Vec<usize> = (0..arms).collect();
        rows.shuffle(&mut rng);
        for row in rows.into_iter().take(blocks - out.len()) {
            let mut order: Vec<usize> = zigzag(arms)
                .map(|step| labels[(step + row) % arms])
                .collect();
            if mirrored {
                order.reverse();
            }
            out.push(order);
        }
        mirrored = !mirrored && arms % 2 == 1;
    }
    out
}

/// 0, n-1, 1, n-2, ...: neighbours differ by n-1, 2, n-3, 4, ..., for even n all distinct modulo n.
fn zigzag(n: usize) -> impl Iterator<Item = usize> {
    (0..n).map(move |i| if i % 2 == 0 { i / 2 } else { n - 1 - i / 2 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// How often each arm stands at each position: `[arm][position]`.
    fn positions(arms: usize, orders: &[Vec<usize>]) -> Vec<Vec<usize>> {
        let mut count = vec![vec![0; arms]; arms];
        for order in orders {
            for (position, arm) in order.iter().enumerate() {
                count[*arm][position] += 1;
            }
        }
        count
    }

    /// How often each arm directly follows each other: `[before][after]`.
    fn followers(arms: usize, orders: &[Vec<usize>]) -> Vec<Vec<usize>> {
        let mut count = vec![vec![0; arms]; arms];
        for pair in orders.iter().flat_map(|order| order.windows(2)) {
            count[pair[0]][pair[1]] += 1;
        }
        count
    }

    fn off_diagonal(count: &[Vec<usize>]) -> Vec<usize> {
        (0..count.len())
            .flat_map(|i| {
                (0..count.len())
                    .filter(move |j| *j != i)
                    .map(move |j| (i, j))
            })
            .map(|(i, j)| count[i][j])
            .collect()
    }

    #[test]
    fn carry_over_is_balanced_in_a_square_of_even_size() {
        for arms in [2, 4, 8, 10] {
            let orders = orders(arms, arms as u32, 3);
            assert!(
                off_diagonal(&followers(arms, &orders))
                    .iter()
                    .all(|n| *n == 1),
                "{arms} arms"
            );
        }
    }

    #[test]
    fn carry_over_is_balanced_in_two_squares_of_odd_size() {
        for arms in [3, 5, 9] {
            let orders = orders(arms, 2 * arms as u32, 3);
            assert!(
                off_diagonal(&followers(arms, &orders))
                    .iter()
                    .all(|n| *n == 2),
                "{arms} arms"
            );
        }
    }

    #[test]
    fn the_seed_decides() {
        assert_eq!(orders(9, 6, 1), orders(9, 6, 1));
        assert_ne!(orders(9, 6, 1), orders(9, 6, 2));
    }

    #[test]
    fn later_squares_are_fresh() {
        let orders = orders(8, 16, 1);
        assert_ne!(orders[..8], orders[8..]);
    }

    #[test]
    fn few_arms() {
        assert_eq!(orders(0, 2, 1), vec![Vec::<usize>::new(); 2]);
        assert_eq!(orders(1, 3, 1), vec![vec![0]; 3]);
        assert!(orders(5, 0, 1).is_empty());
    }

    proptest! {
        #[test]
        fn each_block_holds_each_arm_once_at_balanced_positions(
            arms in 1usize..14, blocks in 0u32..60, seed: u64,
        ) {
            let orders = orders(arms, blocks, seed);
            prop_assert_eq!(orders.len(), blocks as usize);
            for order in &orders {
                let mut sorted = order.clone();
                sorted.sort_unstable();
                prop_assert_eq!(sorted, (0..arms).collect::<Vec<_>>());
            }
            let low = blocks as usize / arms;
            let high = (blocks as usize).div_ceil(arms);
            for count in positions(arms, &orders).into_iter().flatten() {
                prop_assert!((low..=high).contains(&count), "{} not in {}..={}", count, low, high);
            }
        }
    }
}
