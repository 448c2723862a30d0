//! The statistics as CPython's `sys._debugmallocstats()` prints them, line for line.
//!
//! Two things differ between generations. From 2.5 on, when arenas could be released, four lines say how often that was
//! so. From 3.10 on the address map has its lines, with a second `Total`, on which a reader stumbles who takes every line
//! of that name.

use crate::heap::Heap;
use crate::os::Os;
use crate::policy::{KEEP_ALL, Policy};
use crate::stats::Stats;
use core::fmt::{self, Display, Formatter};

/// A heap's statistics, to be printed.
#[derive(Debug, Clone, Copy)]
pub struct DebugText {
    /// What is printed.
    pub stats: Stats,
    /// Whether arenas can be released, so that lines tell of it.
    pub counts_arenas: bool,
}

impl<O: Os, P: Policy> Heap<O, P> {
    /// The text for its statistics as they are now. Takes time in proportion to the pools.
    #[must_use]
    pub fn debug_text(&self) -> DebugText {
        DebugText {
            stats: self.stats(),
            counts_arenas: self.policy().keep() != KEEP_ALL,
        }
    }
}

/// A number with a comma before every three digits.
pub(crate) struct Commas(pub(crate) u64);

impl Display for Commas {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // 20 digits, the most that 64 bits have, and their commas.
        let mut text = [0u8; 26];
        let (mut at, mut left, mut digits) = (text.len(), self.0, 0);
        loop {
            if digits > 0 && digits % 3 == 0 {
                at -= 1;
                text[at] = b',';
            }
            at -= 1;
            text[at] = b'0' + (left % 10) as u8;
            digits += 1;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        // ASCII, all of it.
        f.pad(str::from_utf8(&text[at..]).unwrap_or_default())
    }
}

/// One line: what, to the 35th column, and how many, right-aligned to 22 columns.
fn line(f: &mut Formatter<'_>, what: &dyn Display, value: u64) -> fmt::Result {
    struct Padded<'a>(&'a dyn Display);
    impl Display for Padded<'_> {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            let mut width = Width(0);
            fmt::Write::write_fmt(&mut width, format_args!("{}", self.0))?;
            write!(f, "{}{:2$}", self.0, "", 35usize.saturating_sub(width.0))
        }
    }
    writeln!(f, "{}={:>21}", Padded(what), Commas(value))
}

/// Measures what is written to it.
struct Width(usize);

impl fmt::Write for Width {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

impl Display for DebugText {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let stats = &self.stats;
        writeln!(
            f,
            "Small block threshold = {}, in {} size classes.\n",
            stats.threshold,
            stats.threshold / stats.alignment
        )?;
        writeln!(f, "class   size   num pools   blocks in use  avail blocks")?;
        writeln!(f, "-----   ----   ---------   -------------  ------------")?;
        for (index, class) in stats.classes.iter().enumerate() {
            if class.pools > 0 {
                writeln!(
                    f,
                    "{index:5} {:6} {:11} {:15} {:13}",
                    (index as u64 + 1) * stats.alignment,
                    class.pools,
                    class.used_blocks,
                    class.free_blocks
                )?;
            }
        }
        writeln!(f)?;
        let arenas = &stats.arenas;
        if self.counts_arenas {
            line(f, &"# arenas allocated total", arenas.total)?;
            line(f, &"# arenas reclaimed", arenas.reclaimed)?;
            line(f, &"# arenas highwater mark", arenas.highwater)?;
            line(f, &"# arenas allocated current", arenas.current)?;
        }
        line(
            f,
            &format_args!("{} arenas * {} bytes/arena", arenas.current, arenas.size),
            arenas.current * arenas.size,
        )?;
        writeln!(f)?;
        let bytes = &stats.bytes;
        line(f, &"# bytes in allocated blocks", bytes.allocated)?;
        line(f, &"# bytes in available blocks", bytes.available)?;
        line(
            f,
            &format_args!(
                "{} unused pools * {} bytes",
                stats.free_pools, stats.pool_size
            ),
            bytes.unused_pools,
        )?;
        line(f, &"# bytes lost to pool headers", bytes.headers)?;
        line(f, &"# bytes lost to quantization", bytes.quantization)?;
        line(f, &"# bytes lost to arena alignment", bytes.alignment)?;
        line(f, &"Total", bytes.total())?;
        let Some(map) = &stats.map else {
            return Ok(());
        };
        let [root, middle, leaf] = map.node_bytes;
        writeln!(f, "\narena map counts")?;
        line(f, &"# arena map mid nodes", map.middle_nodes)?;
        line(f, &"# arena map bot nodes", map.leaves)?;
        writeln!(f)?;
        line(f, &"# bytes lost to arena map root", root)?;
        line(
            f,
            &"# bytes lost to arena map mid",
            map.middle_nodes * middle,
        )?;
        line(f, &"# bytes lost to arena map bot", map.leaves * leaf)?;
        line(f, &"Total", map.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::Commas;
    use std::format;

    #[test]
    fn commas() {
        for (number, text) in [
            (0, "0"),
            (7, "7"),
            (999, "999"),
            (1000, "1,000"),
            (262_144, "262,144"),
            (1_048_576, "1,048,576"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(format!("{}", Commas(number)), text);
        }
        assert_eq!(format!("{:>8}", Commas(1000)), "   1,000");
    }
}
