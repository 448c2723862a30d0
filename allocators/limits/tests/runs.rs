//! A run of calls is what the single calls are: the same checksum, the same counts, and the same when one is refused.

use contract::suite::alone;
use contract::{Arm, Counted, Counts, Driver, Lines, Mode, OutOfMemory};
use limits::Null;

const LENGTHS: [u32; 5] = [100, 1000, 900, 3000, 5];
const TEXT: [u8; 5005] = [b'x'; 5005];

/// What is to be equal: the ending, the bytes that are left, the block's size, the checksum, the counts.
type Found = (Result<(), OutOfMemory>, usize, usize, u64, Counts);

/// Appends the lines to a block of 16 bytes in a ring of 4096.
fn appended(
    append: impl FnOnce(
        &mut Driver<Null, Counted>,
        &mut contract::Block,
        &mut Lines,
    ) -> Result<(), OutOfMemory>,
) -> Found {
    let heap = Null::open("null", &[("ring".into(), "4096".into())]).expect("opens");
    // SAFETY: ONE-HEAP: the only driver, over the only heap.
    let mut driver = unsafe { Driver::new(&heap, Counted::new(0)) };
    let mut block = driver.alloc(16).expect("there is room");
    let mut lines = Lines::new(&TEXT, &LENGTHS).expect("they add up");
    let ended = append(&mut driver, &mut block, &mut lines);
    let counts = driver.mode().counts().expect("it counts");
    (ended, lines.bytes(), block.size(), driver.ops(), counts)
}

#[test]
fn a_run_of_appends_is_what_single_ones_are() {
    let _turn = alone();
    for most in [0, 1, 3, 4, 5, 99] {
        let single = appended(|driver, block, lines| {
            for _ in 0..most {
                let Some(line) = lines.first() else { break };
                driver.append(block, line)?;
                lines.pass();
            }
            Ok(())
        });
        let run = appended(|driver, block, lines| driver.append_each(block, lines, most));
        assert_eq!(run, single, "{most} lines");
        if most > 3 {
            let refused = OutOfMemory { requested: 5016 };
            assert_eq!((run.0, run.1, run.2), (Err(refused), 3005, 2016));
        }
    }
}

#[test]
fn a_run_of_extensions_is_what_single_ones_are() {
    let _turn = alone();
    for steps in [0, 1, 5, 6, 100] {
        let single = appended(|driver, block, _| {
            (0..steps).try_for_each(|byte| driver.extend(block, byte, 700))
        });
        let run = appended(|driver, block, _| driver.extend_each(block, 700, 0..steps));
        assert_eq!(run, single, "{steps} steps");
        assert_eq!(run.0.is_err(), steps > 5);
    }
}
