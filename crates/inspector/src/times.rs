//! Times as people read them: RFC 3339, in UTC.

use poolwright_core::Timestamp;
use serde::Serializer;

/// For `#[serde(serialize_with)]`.
pub(crate) fn one<S: Serializer>(time: &Timestamp, out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(time)
}

/// For `#[serde(serialize_with)]` of times that may be absent.
pub(crate) fn maybe<S: Serializer>(time: &Option<Timestamp>, out: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => out.collect_str(time),
        None => out.serialize_none(),
    }
}

/// A day number as `2026-11-30`.
pub(crate) fn date(day: i64) -> String {
    let midnight = Timestamp::from_secs(day.saturating_mul(86_400)).to_string();
    midnight.split_once('T').map_or_else(|| midnight.clone(), |(date, _)| date.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_prints_as_a_date() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(19_782), "2024-02-29");
    }
}
