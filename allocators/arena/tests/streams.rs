//! Random streams of operations: contents against the shadow model, structure against the checker, refusals included.

mod common;

use arena::policy::{KEEP_ALL, OrderKind, Settings, TestKind, Tuned};
use common::CHECK_EVERY;
use common::stream::{Step, run};
use proptest::prelude::*;

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![8 => 1usize..=512, 2 => 1usize..=64, 1 => 500usize..530, 1 => 1usize..5000]
}

fn step(refusals: bool) -> impl Strategy<Value = Step> {
    let at = any::<usize>;
    let granted = || prop_oneof![3 => Just(usize::MAX), 2 => 0usize..3];
    prop_oneof![
        4 => size().prop_map(Step::Alloc),
        3 => (size(), 1usize..120).prop_map(|(size, n)| Step::Run(size, n)),
        4 => (at(), size()).prop_map(|(i, n)| Step::Resize(i, n)),
        2 => (at(), any::<u8>()).prop_map(|(i, b)| Step::Write(i, b)),
        4 => at().prop_map(Step::Free),
        1 => (at(), 2usize..9).prop_map(|(i, n)| Step::FreeEvery(i, n)),
        2 => (at(), 1usize..200).prop_map(|(i, n)| Step::FreeRange(i, n)),
        2 => (0usize..40, 0usize..40).prop_map(|(n, size)| Step::Calloc(n, size)),
        1 => (0u32..13, size()).prop_map(|(bits, size)| Step::Aligned(1 << bits, size)),
        (if refusals { 2 } else { 0 }) => (granted(), granted()).prop_map(|(m, b)| Step::Grant(m, b)),
    ]
}

/// Small arenas, so that they come and go; CPython's; and ones that begin anywhere. With every order and every address
/// test, so with every generation's policy, and with policies that nobody has had.
fn settings() -> impl Strategy<Value = (Settings, usize)> {
    let arena = prop_oneof![
        4 => Just((16 << 10, 4096)),
        2 => Just((64 << 10, 16 << 10)),
        1 => Just((256 << 10, 4096)),
        1 => Just((1 << 20, 16 << 10)),
    ];
    let threshold = prop_oneof![3 => Just(512usize), 1 => Just(256usize), 1 => Just(16usize)];
    let align = prop_oneof![3 => Just(16usize), 1 => Just(8usize)];
    let order = prop_oneof![
        3 => Just(OrderKind::Constant),
        3 => Just(OrderKind::Slide),
        2 => Just(OrderKind::Global),
        1 => Just(OrderKind::Last),
    ];
    let test = prop_oneof![
        Just(TestKind::Radix),
        Just(TestKind::Header),
        Just(TestKind::Header24),
        Just(TestKind::Walk)
    ];
    let numbers = (arena, threshold, align, 0u32..4, 0usize..4);
    (numbers, order, test).prop_map(
        |(((arena, pool), threshold, align, keep, pages), order, test)| {
            let keep = if order == OrderKind::Global {
                KEEP_ALL
            } else {
                keep
            };
            let test = match test {
                TestKind::Header | TestKind::Header24 if pool > 4096 => TestKind::Radix,
                TestKind::Header24 if keep != KEEP_ALL => TestKind::Header,
                test => test,
            };
            let settings = Settings {
                arena,
                pool,
                align,
                threshold,
                keep,
                order,
                test,
            };
            (settings, pages * 4096)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 48 } else { 1000 }))]

    #[test]
    fn any_stream((settings, shift) in settings(), steps in prop::collection::vec(step(false), 1..120)) {
        run(Tuned::new(settings).expect("they fit"), shift, CHECK_EVERY, &steps);
    }

    /// Whatever is refused, the heap stays as it should be, and goes on when memory is there again.
    #[test]
    fn any_stream_with_refusals((settings, shift) in settings(), steps in prop::collection::vec(step(true), 1..120)) {
        run(Tuned::new(settings).expect("they fit"), shift, CHECK_EVERY, &steps);
    }
}
