//! Reads the values of options: durations, times, headers, scopes.

use std::time::Duration;

use chrono::DateTime;
use poolwright::core::Timestamp;
use poolwright::registry::duration as durations;

/// A duration as the file of queues writes it.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    durations::parse(text).map_err(|why| format!("{why}; write it like `500ms`, `90s` or `1h10m`"))
}

/// A time of RFC 3339 with its offset. Parts below a microsecond are dropped.
pub(crate) fn time(text: &str) -> Result<Timestamp, String> {
    match DateTime::parse_from_rfc3339(text) {
        Ok(time) => Ok(Timestamp::from_micros(time.timestamp_micros())),
        Err(_) if DateTime::parse_from_rfc3339(&format!("{text}Z")).is_ok() => {
            Err(format!("it lacks its offset; write `{text}Z` for UTC, or an offset such as `{text}+02:00`"))
        }
        Err(_) if durations::parse(text.trim_start_matches('+')).is_ok() => {
            Err("a time was expected; for one counted from now there is `delay`".to_owned())
        }
        Err(why) => Err(format!("{why}; write it like `2026-12-01T08:00:00Z`")),
    }
}

/// A header as `KEY=VALUE`; the value may be empty and hold further signs of equality.
pub(crate) fn header(text: &str) -> Result<(String, String), String> {
    pair(text, '=').ok_or_else(|| "expected KEY=VALUE".to_owned())
}

/// What a dead letter is about, as `KIND/ID`.
pub(crate) fn reach(text: &str) -> Result<(String, String), String> {
    pair(text, '/').ok_or_else(|| "expected KIND/ID, such as `knowledge_base/kb_7`".to_owned())
}

fn pair(text: &str, between: char) -> Option<(String, String)> {
    let (key, value) = text.split_once(between)?;
    (!key.is_empty()).then(|| (key.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_with_its_offset() {
        let at = Timestamp::from_secs(1_796_112_000);
        assert_eq!(at.to_string(), "2026-12-01T08:00:00.000Z");
        for text in ["2026-12-01T08:00:00Z", "2026-12-01T10:00:00+02:00", "2026-12-01t03:30:00.000-04:30"] {
            assert_eq!(time(text), Ok(at), "{text}");
        }
        assert_eq!(time("1969-12-31T23:59:59.999999Z"), Ok(Timestamp::from_micros(-1)));
        assert_eq!(time("2024-02-29T12:34:56.007Z"), Ok(Timestamp::from_millis(1_709_210_096_007)));
    }

    #[test]
    fn a_text_that_is_no_time_is_refused_with_the_cure() {
        let why = |text| time(text).unwrap_err();
        assert_eq!(
            why("2026-12-01T08:00:00"),
            "it lacks its offset; write `2026-12-01T08:00:00Z` for UTC, or an offset such as `2026-12-01T08:00:00+02:00`"
        );
        assert!(why("+90s").contains("there is `delay`"));
        for text in
            ["", "tomorrow", "2026-13-01T08:00:00Z", "2025-02-29T08:00:00Z", "2026-12-01", "1796112000"]
        {
            assert!(why(text).ends_with("write it like `2026-12-01T08:00:00Z`"), "{text}");
        }
    }

    #[test]
    fn a_pair_is_split_at_the_first_sign() {
        let owned = |key: &str, value: &str| Ok((key.to_owned(), value.to_owned()));
        assert_eq!(header("a=b=c"), owned("a", "b=c"));
        assert_eq!(header("a="), owned("a", ""));
        assert_eq!(reach("document/a/b"), owned("document", "a/b"));
        assert!(header("=b").is_err() && header("a").is_err() && reach("kb_7").is_err());
    }

    #[test]
    fn a_duration_without_a_unit_is_told_how_to_be_written() {
        assert_eq!(duration("1h10m"), Ok(Duration::from_secs(4_200)));
        assert_eq!(
            duration("90").unwrap_err(),
            "the number 90 has no unit; write it like `500ms`, `90s` or `1h10m`"
        );
    }
}
