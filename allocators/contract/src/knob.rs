//! Knobs as an arm reads them.

use crate::Refused;

/// The knobs that an arm was asked for, taken by name.
///
/// What nobody has taken by the time of [`Knobs::finish`] is a knob the arm does not have, and refused: an ignored
/// knob would be measured under a name that promises it.
#[derive(Debug)]
pub struct Knobs<'a> {
    given: Vec<(&'a str, &'a str)>,
    offered: Vec<&'static str>,
}

impl<'a> Knobs<'a> {
    /// Over the `(name, value)` pairs of [`Arm::open`](crate::Arm::open).
    #[must_use]
    pub fn new(given: &'a [(String, String)]) -> Self {
        Knobs {
            given: given
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect(),
            offered: Vec::new(),
        }
    }

    /// Takes the knob `name` as a number of bytes (see [`parse_bytes`]).
    ///
    /// # Errors
    /// [`Refused::Knob`] if it is there and not a number of bytes.
    pub fn bytes(&mut self, name: &'static str) -> Result<Option<u64>, Refused> {
        self.take(
            name,
            parse_bytes,
            "a number of bytes such as 65536, 64KiB or 1MiB",
        )
    }

    /// Takes the knob `name` as a whole number that may be negative.
    ///
    /// # Errors
    /// [`Refused::Knob`] if it is there and not a whole number.
    pub fn signed(&mut self, name: &'static str) -> Result<Option<i64>, Refused> {
        self.take(name, |text| text.parse().ok(), "a whole number")
    }

    /// Takes the knob `name` as a number.
    ///
    /// # Errors
    /// [`Refused::Knob`] if it is there and not a finite number.
    pub fn number(&mut self, name: &'static str) -> Result<Option<f64>, Refused> {
        self.take(
            name,
            |text| text.parse().ok().filter(|x: &f64| x.is_finite()),
            "a number",
        )
    }

    /// Takes the knob `name` as a switch, `0` or `1`.
    ///
    /// # Errors
    /// [`Refused::Knob`] if it is there and neither.
    pub fn switch(&mut self, name: &'static str) -> Result<Option<bool>, Refused> {
        let parse = |text: &str| match text {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        };
        self.take(name, parse, "0 or 1")
    }

    /// Takes the knob `name` as one of `words`.
    ///
    /// # Errors
    /// [`Refused::Knob`] if it is there and none of them.
    pub fn word(
        &mut self,
        name: &'static str,
        words: &[&'static str],
    ) -> Result<Option<&'static str>, Refused> {
        let parse = |text: &str| words.iter().copied().find(|word| *word == text);
        self.take(name, parse, &words.join(" or "))
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// [`Refused::Knob`] naming the first knob that nobody took, and those that there are.
    pub fn finish(self, arm: &str) -> Result<(), Refused> {
        match self.given.first() {
            None => Ok(()),
            Some((name, _)) if self.offered.is_empty() => Err(Refused::Knob(format!(
                "{arm} has no knob {name:?}, nor any other"
            ))),
            Some((name, _)) => Err(Refused::Knob(format!(
                "{arm} has no knob {name:?}; it has: {}",
                self.offered.join(", ")
            ))),
        }
    }

    /// If a knob is given twice, the last one counts, as on a command line.
    fn take<T>(
        &mut self,
        name: &'static str,
        parse: impl Fn(&str) -> Option<T>,
        expected: &str,
    ) -> Result<Option<T>, Refused> {
        self.offered.push(name);
        let mut found = None;
        for (_, value) in self.given.iter().filter(|(given, _)| *given == name) {
            let parsed = parse(value)
                .ok_or_else(|| Refused::Knob(format!("{name}={value}: expected {expected}")))?;
            found = Some(parsed);
        }
        self.given.retain(|(given, _)| *given != name);
        Ok(found)
    }
}

/// A number of bytes: digits, then nothing, `KiB`, `MiB` or `GiB`. `None` if it is not that, or 2^64 and more.
#[must_use]
pub fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let shift = match unit {
        "" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect()
    }

    #[test]
    fn bytes_have_binary_units_only() {
        assert_eq!(parse_bytes("0"), Some(0));
        assert_eq!(parse_bytes("4096"), Some(4096));
        assert_eq!(parse_bytes("16KiB"), Some(16384));
        assert_eq!(parse_bytes("1MiB"), Some(1 << 20));
        assert_eq!(parse_bytes("1GiB"), Some(1 << 30));
        for wrong in [
            "",
            "KiB",
            "1 KiB",
            "1kB",
            "1MB",
            "-1",
            "1.5KiB",
            "+1",
            "18446744073709551616",
            "17179869184GiB",
        ] {
            assert_eq!(parse_bytes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn knobs_are_taken_by_name_and_the_last_one_counts() {
        let pairs = given(&[
            ("a", "1"),
            ("b", "-1"),
            ("a", "2KiB"),
            ("c", "1"),
            ("d", "0.5"),
            ("w", "red"),
        ]);
        let mut knobs = Knobs::new(&pairs);
        assert_eq!(knobs.word("w", &["blue", "red"]), Ok(Some("red")));
        assert_eq!(knobs.word("v", &["blue"]), Ok(None));
        assert_eq!(knobs.bytes("a"), Ok(Some(2048)));
        assert_eq!(knobs.signed("b"), Ok(Some(-1)));
        assert_eq!(knobs.switch("c"), Ok(Some(true)));
        assert_eq!(knobs.number("d"), Ok(Some(0.5)));
        assert_eq!(knobs.bytes("e"), Ok(None));
        assert_eq!(knobs.finish("arm"), Ok(()));
    }

    #[test]
    fn a_knob_that_nobody_took_is_refused_by_name() {
        let pairs = given(&[("granul", "4096")]);
        let mut knobs = Knobs::new(&pairs);
        assert_eq!(knobs.bytes("granule"), Ok(None));
        let Err(Refused::Knob(why)) = knobs.finish("tcmalloc-2007") else {
            panic!("not refused")
        };
        assert!(
            why.contains("granul\"") && why.contains("it has: granule"),
            "{why}"
        );
    }

    #[test]
    fn a_wrong_value_is_refused_with_what_was_expected() {
        let pairs = given(&[
            ("a", "lots"),
            ("b", "yes"),
            ("c", "inf"),
            ("d", "1.5"),
            ("e", "blue"),
        ]);
        let mut knobs = Knobs::new(&pairs);
        assert!(knobs.bytes("a").is_err());
        assert!(knobs.switch("b").is_err());
        assert!(knobs.number("c").is_err());
        assert!(knobs.signed("d").is_err());
        let Err(Refused::Knob(why)) = knobs.word("e", &["red", "green"]) else {
            panic!("not refused")
        };
        assert_eq!(why, "e=blue: expected red or green");
    }
}
