//! Seeded text: four kinds that differ in where the newlines are and in nothing else.
//!
//! The characters come from one stream of the generator and the lengths of lines from another, so all kinds of one
//! seed hold the same characters between their newlines, and a short text is the beginning of a longer one. A
//! directory of texts takes its two streams for each file from further on in the same generator.

use rand::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::fmt;
use std::str::FromStr;

/// Shortest line of [`Corpus::Text`] in bytes, newline included.
pub const SHORTEST_LINE: usize = 20;
/// Longest line of [`Corpus::Text`] in bytes, newline included.
pub const LONGEST_LINE: usize = 120;

/// The kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Corpus {
    /// Lines of 20 to 120 bytes, newline included, each length equally likely: 70 on average, as in source code.
    Text,
    /// Every 256th byte is a newline.
    Nl256,
    /// Every 65,536th byte is a newline.
    Nl64k,
    /// No newline at all: one line.
    Unbroken,
}

impl Corpus {
    /// Every kind, in the order of help texts.
    pub const ALL: [Corpus; 4] = [Corpus::Text, Corpus::Nl256, Corpus::Nl64k, Corpus::Unbroken];

    /// The name on the command line, in TOML and in records.
    pub fn name(self) -> &'static str {
        match self {
            Corpus::Text => "text",
            Corpus::Nl256 => "nl256",
            Corpus::Nl64k => "nl64k",
            Corpus::Unbroken => "none",
        }
    }

    /// Fills `out` with the beginning of this kind's endless text for `seed`; the last line is cut where `out` ends.
    pub fn fill(self, seed: u64, out: &mut [u8]) {
        self.texts(seed).fill_next(out);
    }

    /// The endless texts of a directory for `seed`, each another; the first is that of [`Corpus::fill`].
    pub fn texts(self, seed: u64) -> Texts {
        Texts {
            kind: self,
            next: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// The most lines that `bytes` of this kind can have, one that is cut at the end included.
    pub fn most_lines(self, bytes: usize) -> usize {
        let shortest = match self {
            Corpus::Text => SHORTEST_LINE,
            Corpus::Nl256 => 256,
            Corpus::Nl64k => 65_536,
            Corpus::Unbroken => return bytes.min(1),
        };
        bytes.div_ceil(shortest)
    }
}

/// The texts of a directory, one after the other.
#[derive(Debug, Clone)]
pub struct Texts {
    kind: Corpus,
    /// Where the characters of the next text begin.
    next: Xoshiro256PlusPlus,
}

impl Texts {
    /// Fills `out` with the beginning of the next text.
    pub fn fill_next(&mut self, out: &mut [u8]) {
        let mut characters = self.next.clone();
        // 2^192 draws ahead: no stream of one text meets one of another.
        self.next.long_jump();
        let mut lengths = characters.clone();
        // 2^128 draws ahead: the two streams never meet.
        lengths.jump();
        fill_characters(&mut characters, out);
        match self.kind {
            Corpus::Text => {
                let mut end = line_length(&mut lengths);
                while end <= out.len() {
                    out[end - 1] = b'\n';
                    end += line_length(&mut lengths);
                }
            }
            Corpus::Nl256 => newline_every(256, out),
            Corpus::Nl64k => newline_every(65_536, out),
            Corpus::Unbroken => {}
        }
    }
}

impl fmt::Display for Corpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No corpus has this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownCorpus(pub String);

impl fmt::Display for UnknownCorpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no corpus named {:?}", self.0)
    }
}
impl std::error::Error for UnknownCorpus {}

impl FromStr for Corpus {
    type Err = UnknownCorpus;

    fn from_str(name: &str) -> Result<Corpus, UnknownCorpus> {
        Corpus::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| UnknownCorpus(name.to_owned()))
    }
}

/// A length of 20 to 120 bytes, each equally likely (to one part in 2^57).
fn line_length(lengths: &mut Xoshiro256PlusPlus) -> usize {
    const CHOICES: u128 = (LONGEST_LINE - SHORTEST_LINE + 1) as u128;
    SHORTEST_LINE + ((u128::from(lengths.next_u64()) * CHOICES) >> 64) as usize
}

fn newline_every(step: usize, out: &mut [u8]) {
    for byte in out.iter_mut().skip(step - 1).step_by(step) {
        *byte = b'\n';
    }
}

/// Fills with printable ASCII, eight characters a draw: the 64 from space to underscore, each equally likely.
fn fill_characters(characters: &mut Xoshiro256PlusPlus, out: &mut [u8]) {
    let mut draw = || {
        let bits = characters.next_u64() & 0x3f3f_3f3f_3f3f_3f3f;
        (bits + 0x2020_2020_2020_2020).to_le_bytes()
    };
    let mut chunks = out.chunks_exact_mut(8);
    for chunk in &mut chunks {
        chunk.copy_from_slice(&draw());
    }
    let rest = chunks.into_remainder();
    let last = draw();
    let len = rest.len();
    rest.copy_from_slice(&last[..len]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::lines;
    use xxhash_rust::xxh3::xxh3_64;

    fn text(kind: Corpus, seed: u64, len: usize) -> Vec<u8> {
        let mut out = vec![0; len];
        kind.fill(seed, &mut out);
        out
    }

    /// Records name their input by hash: these must stay as they are, or the schema number must rise.
    #[test]
    fn golden_hashes() {
        let hashes =
            Corpus::ALL.map(|kind| format!("{kind} {:016x}", xxh3_64(&text(kind, 1, 1 << 20))));
        assert_eq!(
            hashes,
            [
                "text 0b2bf046064c9352",
                "nl256 09085350975c3c24",
                "nl64k f17f26c60eed0f95",
                "none dabccc1d19be0855",
            ]
        );
        assert_ne!(text(Corpus::Text, 1, 1000), text(Corpus::Text, 2, 1000));
    }

    #[test]
    fn all_printable_and_the_same_between_the_newlines() {
        let unbroken = text(Corpus::Unbroken, 7, 300_000);
        assert!(unbroken.iter().all(|b| (b' '..=b'_').contains(b)));
        for kind in Corpus::ALL {
            let other = text(kind, 7, 300_000);
            assert!(
                other
                    .iter()
                    .zip(&unbroken)
                    .all(|(a, b)| a == b || *a == b'\n'),
                "{kind}"
            );
        }
    }

    #[test]
    fn a_short_text_begins_a_longer_one() {
        for kind in Corpus::ALL {
            let long = text(kind, 3, 200_000);
            for len in [
                0, 1, 7, 8, 9, 255, 256, 257, 65_535, 65_536, 65_537, 199_999,
            ] {
                assert_eq!(text(kind, 3, len), long[..len], "{kind}, {len} bytes");
            }
        }
    }

    #[test]
    fn the_texts_of_a_directory_differ_and_follow_from_the_seed() {
        const LEN: usize = 100_000;
        for kind in Corpus::ALL {
            let directory = |seed| {
                let mut texts = kind.texts(seed);
                [(); 4].map(|()| {
                    let mut out = vec![0; LEN];
                    texts.fill_next(&mut out);
                    out
                })
            };
            let files = directory(9);
            assert_eq!(files, directory(9), "{kind}");
            assert_eq!(files[0], text(kind, 9, LEN), "{kind}");
            for (i, file) in files.iter().enumerate() {
                assert!(!files[..i].contains(file), "{kind}: file {i}");
                assert!(!directory(10).contains(file), "{kind}: file {i}");
            }
        }
    }

    #[test]
    fn no_text_has_more_lines_than_it_can() {
        for kind in Corpus::ALL {
            for len in [0, 1, 20, 256, 65_536, 65_537, 300_000] {
                let lines = lines::count(&text(kind, 3, len));
                let most = kind.most_lines(len);
                assert!(lines <= most, "{kind}, {len} bytes: {lines} of {most}");
                if kind != Corpus::Text {
                    assert_eq!(lines, most, "{kind}, {len} bytes");
                }
            }
        }
    }

    #[test]
    fn newlines_at_fixed_places() {
        for (kind, step) in [(Corpus::Nl256, 256), (Corpus::Nl64k, 65_536)] {
            let out = text(kind, 5, 1 << 20);
            let places: Vec<usize> = (0..out.len()).filter(|&i| out[i] == b'\n').collect();
            let wanted: Vec<usize> = (1..=out.len() / step).map(|i| i * step - 1).collect();
            assert_eq!(places, wanted, "{kind}");
        }
        assert!(!text(Corpus::Unbroken, 5, 1 << 20).contains(&b'\n'));
    }

    #[test]
    fn line_lengths_are_uniform() {
        let out = text(Corpus::Text, 11, 16 << 20);
        let mut table = Vec::new();
        lines::split(&out, &mut table).unwrap();
        table.pop(); // cut, most likely
        let mut seen = [0u64; LONGEST_LINE + 1];
        for &len in &table {
            seen[len as usize] += 1;
        }
        assert_eq!(seen.iter().position(|&n| n > 0), Some(SHORTEST_LINE));
        assert_eq!(seen.iter().rposition(|&n| n > 0), Some(LONGEST_LINE));
        let n = table.len() as f64;
        let mean = table.iter().map(|&len| f64::from(len)).sum::<f64>() / n;
        // Standard deviation 29.2 over about 240,000 lines: 0.06; five of them.
        assert!((mean - 70.0).abs() < 0.3, "mean {mean}");
        let expected = n / 101.0;
        let chi_square: f64 = seen[SHORTEST_LINE..]
            .iter()
            .map(|&k| (k as f64 - expected).powi(2) / expected)
            .sum();
        // 100 degrees of freedom: 99.99 % lie below 161, and 0.01 % below 54.
        assert!(
            (54.0..161.0).contains(&chi_square),
            "chi-square {chi_square}"
        );
    }

    #[test]
    fn every_character_is_equally_likely() {
        let out = text(Corpus::Unbroken, 13, 1 << 20);
        let mut seen = [0u64; 64];
        for &byte in &out {
            seen[usize::from(byte - b' ')] += 1;
        }
        let (n, p) = (out.len() as f64, 1.0 / 64.0);
        let (mean, deviation) = (n * p, (n * p * (1.0 - p)).sqrt());
        for (character, count) in seen.iter().enumerate() {
            let far = (*count as f64 - mean).abs();
            assert!(far < 5.0 * deviation, "character {character}: {count}");
        }
    }

    #[test]
    fn names_go_both_ways() {
        for kind in Corpus::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert_eq!(
            "Text".parse::<Corpus>(),
            Err(UnknownCorpus("Text".to_owned()))
        );
    }
}
