//! Sizes as people write them: `512B`, `64KiB`, `1MiB`.
//!
//! Invariant: [`show`] writes what [`parse`] reads, to the byte.

/// The largest size the file accepts: 512 MiB, the longest value Redis holds.
pub const MAX: usize = 512 * 1024 * 1024;

/// The units: binary ones first, so that [`show`] prefers them.
const UNITS: [(&str, usize); 7] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
];

/// How to write a size; the cure of every [`SizeError`].
pub(crate) const CURE: &str =
    "write a whole number with a unit: `512B`, `64KiB`, `1MiB` (1024 each), or `KB`, `MB` (1000 each)";

/// Why a text is no size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// Does not begin with digits.
    #[error("expected a whole number, found `{0}`")]
    NoNumber(String),
    /// A number alone.
    #[error("the number {0} has no unit")]
    NoUnit(String),
    /// An unknown unit.
    #[error("unknown unit `{0}`, expected B, KiB, MiB, GiB, KB, MB or GB")]
    Unit(String),
    /// More than [`MAX`].
    #[error("more than 512MiB")]
    TooLarge,
}

/// Reads a size in bytes. Units are told apart by their letters, not by their case: `1mib` is `1MiB`.
///
/// ```
/// assert_eq!(poolwright_registry::size::parse("1MiB"), Ok(1_048_576));
/// ```
///
/// # Errors
/// [`SizeError`], naming the part that is wrong.
pub fn parse(text: &str) -> Result<usize, SizeError> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    if number.is_empty() {
        return Err(SizeError::NoNumber(text.to_owned()));
    }
    if unit.is_empty() {
        return Err(SizeError::NoUnit(number.to_owned()));
    }
    let (_, bytes) = UNITS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit))
        .ok_or_else(|| SizeError::Unit(unit.to_owned()))?;
    number
        .parse::<usize>()
        .ok()
        .and_then(|n| n.checked_mul(*bytes))
        .filter(|total| *total <= MAX)
        .ok_or(SizeError::TooLarge)
}

/// Writes a size with the largest unit that divides it.
#[must_use]
pub fn show(bytes: usize) -> String {
    let (unit, size) =
        UNITS[..4].iter().find(|(_, size)| bytes > 0 && bytes.is_multiple_of(*size)).unwrap_or(&("B", 1));
    format!("{}{unit}", bytes / size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_spellings_are_read_and_written() {
        for (text, bytes, shown) in [
            ("1MiB", 1_048_576, "1MiB"),
            ("64kib", 65_536, "64KiB"),
            ("512B", 512, "512B"),
            ("0B", 0, "0B"),
            ("1MB", 1_000_000, "1000000B"),
            ("512MiB", MAX, "512MiB"),
        ] {
            assert_eq!(parse(text), Ok(bytes));
            assert_eq!(show(bytes), shown);
            assert_eq!(parse(shown), Ok(bytes));
        }
    }

    #[test]
    fn anything_else_is_refused_with_its_reason() {
        for (text, why) in [
            ("", SizeError::NoNumber("".into())),
            ("MiB", SizeError::NoNumber("MiB".into())),
            ("-1B", SizeError::NoNumber("-1B".into())),
            ("10", SizeError::NoUnit("10".into())),
            ("1.5MiB", SizeError::Unit(".5MiB".into())),
            ("1M", SizeError::Unit("M".into())),
            ("513MiB", SizeError::TooLarge),
            ("99999999999999999999GiB", SizeError::TooLarge),
        ] {
            assert_eq!(parse(text), Err(why), "{text}");
        }
    }
}
