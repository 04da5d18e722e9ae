//! Durations as people write them: `500ms`, `90s`, `1h10m`, `90d`.
//!
//! Invariant: [`show`] writes what [`parse`] reads, and the two agree to the millisecond.

use std::time::Duration;

/// The longest duration the file accepts anywhere: 3650 days.
pub const MAX: Duration = Duration::from_secs(3_650 * 86_400);

/// The units, largest first, each in milliseconds.
const UNITS: [(&str, u64); 6] =
    [("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// How to write a duration; the cure of every `DurationError`.
pub(crate) const CURE: &str = "write numbers with units, largest first: `500ms`, `90s`, `1h10m`, `90d`";

/// Why a text is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Nothing there.
    #[error("expected a duration, found nothing")]
    Empty,
    /// A unit without a number before it, or something that is neither.
    #[error("expected a whole number before `{0}`")]
    NoNumber(String),
    /// A number without a unit after it.
    #[error("the number {0} has no unit")]
    NoUnit(String),
    /// An unknown unit.
    #[error("unknown unit `{0}`, expected w, d, h, m, s or ms")]
    Unit(String),
    /// A unit that stands twice or after a smaller one.
    #[error("unit `{0}` comes twice or after a smaller one")]
    Order(String),
    /// More than [`MAX`].
    #[error("longer than 3650 days")]
    TooLong,
}

/// Reads a duration: whole numbers with the units `w d h m s ms`, largest first, without blanks.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(poolwright_registry::duration::parse("1h10m"), Ok(Duration::from_secs(4_200)));
/// ```
///
/// # Errors
/// [`DurationError`], naming the part that is wrong.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    if text.is_empty() {
        return Err(DurationError::Empty);
    }
    let (mut rest, mut millis, mut allowed) = (text, 0_u64, &UNITS[..]);
    while !rest.is_empty() {
        let (number, after) = split(rest, |c| c.is_ascii_digit());
        let (unit, next) = split(after, |c| !c.is_ascii_digit());
        if number.is_empty() {
            return Err(DurationError::NoNumber(unit.to_owned()));
        }
        if unit.is_empty() {
            return Err(DurationError::NoUnit(number.to_owned()));
        }
        let Some(at) = allowed.iter().position(|(name, _)| *name == unit) else {
            let known = UNITS.iter().any(|(name, _)| *name == unit);
            let unit = unit.to_owned();
            return Err(if known { DurationError::Order(unit) } else { DurationError::Unit(unit) });
        };
        let part = number.parse::<u64>().ok().and_then(|n| n.checked_mul(allowed[at].1));
        millis = part.and_then(|part| millis.checked_add(part)).ok_or(DurationError::TooLong)?;
        allowed = &allowed[at + 1..];
        rest = next;
    }
    let duration = Duration::from_millis(millis);
    if duration > MAX { Err(DurationError::TooLong) } else { Ok(duration) }
}

/// Writes a duration the shortest way: `1h10m`, `0s`. Parts below a millisecond are dropped.
#[must_use]
pub fn show(duration: Duration) -> String {
    let mut millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if millis == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    // Weeks are read but not written: `90d` says more than `12w6d`.
    for (unit, size) in &UNITS[1..] {
        if millis >= *size {
            text.push_str(&format!("{}{unit}", millis / size));
            millis %= size;
        }
    }
    text
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_spellings_are_read() {
        for (text, millis) in [
            ("500ms", 500),
            ("90s", 90_000),
            ("2h", 7_200_000),
            ("1h10m", 4_200_000),
            ("1d2h3m4s5ms", 93_784_005),
            ("2h0m0s", 7_200_000),
            ("1w", 604_800_000),
            ("0s", 0),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused_with_its_reason() {
        for (text, why) in [
            ("", DurationError::Empty),
            ("90", DurationError::NoUnit("90".into())),
            ("h", DurationError::NoNumber("h".into())),
            ("-5s", DurationError::NoNumber("-".into())),
            ("1.5h", DurationError::Unit(".".into())),
            ("5 s", DurationError::Unit(" s".into())),
            ("5min", DurationError::Unit("min".into())),
            ("10m1h", DurationError::Order("h".into())),
            ("1s1s", DurationError::Order("s".into())),
            ("3651d", DurationError::TooLong),
            ("99999999999999999999999d", DurationError::TooLong),
            ("18446744073709551615w", DurationError::TooLong),
        ] {
            assert_eq!(parse(text), Err(why), "{text}");
        }
    }

    #[test]
    fn what_is_shown_reads_back() {
        for millis in [0, 1, 999, 1_000, 61_001, 3_600_000, 4_200_000, 86_400_000, 90 * 86_400_000] {
            let duration = Duration::from_millis(millis);
            assert_eq!(parse(&show(duration)), Ok(duration), "{}", show(duration));
        }
        assert_eq!(show(Duration::from_secs(4_200)), "1h10m");
        assert_eq!(show(Duration::from_micros(10)), "0s");
    }
}
