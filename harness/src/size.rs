//! Sizes and durations as people write them: `16MiB`, `70`, `20s`, `500ms`.
//!
//! Parsing is strict and formatting is exact: [`format_bytes`] and [`format_duration`] give a text that parses back
//! to the same value, so that a parameter has one spelling in plans, records and tables. Figures for the eye alone
//! go through [`approx_bytes`] and [`approx_seconds`].

use std::fmt;
use std::time::Duration;

/// Binary units, the largest first.
const BYTE_UNITS: [(&str, u64); 4] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
];

/// Time units in milliseconds, the largest first.
const TIME_UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// A text that is no size or no duration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeError {
    /// The text as given.
    pub text: String,
    /// What would have been accepted.
    pub expected: String,
}

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: expected {}", self.text, self.expected)
    }
}
impl std::error::Error for SizeError {}

/// Splits leading digits from the unit; spaces between the two are allowed.
fn split(text: &str) -> Option<(u64, &str)> {
    let trimmed = text.trim();
    let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
    let number = trimmed[..digits].parse().ok()?;
    Some((number, trimmed[digits..].trim_start()))
}

/// Bytes from `70`, `70B`, `64KiB`, `16MiB`, `1GiB` or `1TiB`.
///
/// # Errors
/// [`SizeError`] naming what was expected; decimal suffixes (`MB`) are refused, because half of their readers take
/// them for binary ones.
pub fn parse_bytes(text: &str) -> Result<u64, SizeError> {
    let refuse = |expected: &str| SizeError {
        text: text.to_owned(),
        expected: expected.to_owned(),
    };
    const EXPECTED: &str = "a whole number of bytes such as 70, 64KiB, 16MiB or 1GiB";
    let (number, unit) = split(text).ok_or_else(|| refuse(EXPECTED))?;
    if unit.is_empty() || unit == "B" {
        return Ok(number);
    }
    if let Some((_, factor)) = BYTE_UNITS.iter().find(|(name, _)| *name == unit) {
        return number
            .checked_mul(*factor)
            .ok_or_else(|| refuse("a size below 16 EiB, which is all that 64 bits hold"));
    }
    let near = BYTE_UNITS.iter().find(|(name, _)| {
        name[..1].eq_ignore_ascii_case(&unit[..unit.chars().next().map_or(0, char::len_utf8)])
    });
    Err(match near {
        Some((name, _)) => refuse(&format!(
            "{EXPECTED}; units are binary, so write {number}{name}"
        )),
        None => refuse(EXPECTED),
    })
}

/// The exact size in the largest unit that divides it: `16MiB`, `70`.
pub fn format_bytes(bytes: u64) -> String {
    match BYTE_UNITS
        .iter()
        .find(|(_, factor)| bytes >= *factor && bytes.is_multiple_of(*factor))
    {
        Some((name, factor)) => format!("{}{name}", bytes / factor),
        None => bytes.to_string(),
    }
}

/// Decimal units of numbers, the largest first.
const COUNT_UNITS: [(&str, u64); 2] = [("M", 1_000_000), ("k", 1_000)];

/// A number from `10k` (thousands), `1M` (millions) or `70`; `None` for anything else.
pub fn parse_count(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    if unit.is_empty() {
        return Some(number);
    }
    let (_, factor) = COUNT_UNITS.iter().find(|(name, _)| *name == unit)?;
    number.checked_mul(*factor)
}

/// The exact number in the largest unit that divides it: `10k`, `1M`, `1500`.
pub fn format_count(count: u64) -> String {
    match COUNT_UNITS
        .iter()
        .find(|(_, factor)| count >= *factor && count.is_multiple_of(*factor))
    {
        Some((name, factor)) => format!("{}{name}", count / factor),
        None => count.to_string(),
    }
}

/// The size for the eye: three digits and a unit, `253 GiB`.
pub fn approx_bytes(bytes: u64) -> String {
    match BYTE_UNITS.iter().find(|(_, factor)| bytes >= *factor) {
        Some((name, factor)) => {
            format!("{} {name}", three_digits(bytes as f64 / *factor as f64))
        }
        None => format!("{bytes} B"),
    }
}

/// A duration from `20s`, `500ms`, `2m`, `1h`, or `0` for none.
///
/// # Errors
/// [`SizeError`] naming what was expected.
pub fn parse_duration(text: &str) -> Result<Duration, SizeError> {
    let refuse = || SizeError {
        text: text.to_owned(),
        expected: "a whole number with its unit such as 500ms, 20s, 2m or 1h, or 0".to_owned(),
    };
    let (number, unit) = split(text).ok_or_else(refuse)?;
    if unit.is_empty() && number == 0 {
        return Ok(Duration::ZERO);
    }
    let (_, factor) = TIME_UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(refuse)?;
    number
        .checked_mul(*factor)
        .map(Duration::from_millis)
        .ok_or_else(refuse)
}

/// The exact duration, to the millisecond, in the largest unit that divides it: `2m`, `20s`, `500ms`; `0` for none.
pub fn format_duration(duration: Duration) -> String {
    let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    match TIME_UNITS
        .iter()
        .find(|(_, factor)| ms >= *factor && ms.is_multiple_of(*factor))
    {
        Some((name, factor)) => format!("{}{name}", ms / factor),
        None => "0".to_owned(),
    }
}

/// Nanoseconds for the eye: three digits and a unit, `31.2 ms`.
pub fn approx_seconds(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns >= 1e9 => (ns / 1e9, "s"),
        ns if ns >= 1e6 => (ns / 1e6, "ms"),
        ns if ns >= 1e3 => (ns / 1e3, "us"),
        ns => (ns, "ns"),
    };
    format!("{} {unit}", three_digits(value))
}

/// A figure for the eye: at least three significant digits, whole digits never cut: `0.00213`, `2.13`, `8192`.
pub fn three_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let decimals = (2 - value.abs().log10().floor() as i32).clamp(0, 12) as usize;
    let text = format!("{value:.decimals$}");
    // 9.996 rounds up to 10.00, which has a digit too many.
    let decimals_after = text.parse::<f64>().map_or(0, |rounded| {
        (2 - rounded.abs().log10().floor() as i32).clamp(0, 12) as usize
    });
    if decimals_after < decimals {
        format!("{value:.decimals_after$}")
    } else {
        text
    }
}

/// A count with its noun: `1 claim`, `2 claims`.
pub fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_read() {
        for (text, bytes) in [
            ("70", 70),
            ("0", 0),
            ("70B", 70),
            ("64KiB", 64 << 10),
            ("16MiB", 16 << 20),
            (" 16 MiB ", 16 << 20),
            ("1GiB", 1 << 30),
            ("2TiB", 2 << 40),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused_with_what_was_expected() {
        for text in [
            "",
            "MiB",
            "-1",
            "1.5MiB",
            "16 apples",
            "99999999999999999999",
            "é",
            "1é",
        ] {
            let error = parse_bytes(text).expect_err(text);
            assert!(error.to_string().contains("16MiB"), "{error}");
        }
        let error = parse_bytes("512MB").expect_err("decimal suffix");
        assert!(error.to_string().ends_with("write 512MiB"), "{error}");
        let error = parse_bytes("17000000TiB").expect_err("too large");
        assert!(error.to_string().contains("16 EiB"), "{error}");
    }

    #[test]
    fn durations_are_read() {
        for (text, ms) in [
            ("20s", 20_000),
            ("500ms", 500),
            ("2m", 120_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_millis(ms)),
                "{text}"
            );
        }
        assert_eq!(parse_duration("0"), Ok(Duration::ZERO));
        for text in ["20", "s", "", "1.5s", "20 sec", "99999999999999999h"] {
            let error = parse_duration(text).expect_err(text);
            assert!(error.to_string().contains("20s"), "{error}");
        }
    }

    #[test]
    fn figures_for_the_eye() {
        assert_eq!(approx_bytes(272_000_000_000), "253 GiB");
        assert_eq!(approx_bytes(512), "512 B");
        assert_eq!(approx_seconds(31_234_567.0), "31.2 ms");
        assert_eq!(approx_seconds(2.0e9), "2.00 s");
        for (value, text) in [
            (0.002_134, "0.00213"),
            (2.134, "2.13"),
            (9.996, "10.0"),
            (99.96, "100"),
            (8192.4, "8192"),
            (0.0, "0"),
        ] {
            assert_eq!(three_digits(value), text);
        }
    }

    proptest! {
        #[test]
        fn exact_forms_read_back(bytes: u64, ms in 0u64..1 << 50) {
            prop_assert_eq!(parse_bytes(&format_bytes(bytes)), Ok(bytes));
            let duration = Duration::from_millis(ms);
            prop_assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = (parse_bytes(&text), parse_duration(&text));
        }
    }
}
