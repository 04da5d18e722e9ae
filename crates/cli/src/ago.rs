//! Times and spans as people say them: `3m ago`, `in 2h`, `250ms`.

use std::time::Duration;

use poolwright::core::Timestamp;

/// The units in seconds, largest first, and from how many seconds on each is used. `90m` says more than `1h`.
const UNITS: [(&str, u64, u64); 3] = [("d", 86_400, 172_800), ("h", 3_600, 7_200), ("m", 60, 120)];

/// How far a time lies from now.
pub(crate) fn from_now(now: Timestamp, at: Timestamp) -> String {
    if at > now { format!("in {}", span(at.since(now))) } else { format!("{} ago", span(now.since(at))) }
}

/// A time, and how far it lies from now.
pub(crate) fn full(now: Timestamp, at: Timestamp) -> String {
    format!("{at} ({})", from_now(now, at))
}

/// A span in its largest fitting unit, rounded down.
pub(crate) fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    if seconds == 0 && !span.is_zero() {
        return format!("{}ms", span.as_millis());
    }
    match UNITS.iter().find(|(_, _, from)| seconds >= *from) {
        Some((unit, size, _)) => format!("{}{unit}", seconds / size),
        None => format!("{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_one_unit() {
        let spans = [
            (Duration::ZERO, "0s"),
            (Duration::from_micros(1), "0ms"),
            (Duration::from_millis(999), "999ms"),
            (Duration::from_secs(119), "119s"),
            (Duration::from_secs(120), "2m"),
            (Duration::from_secs(7_199), "119m"),
            (Duration::from_secs(7_200), "2h"),
            (Duration::from_secs(172_799), "47h"),
            (Duration::from_secs(10 * 86_400), "10d"),
        ];
        for (length, shown) in spans {
            assert_eq!(span(length), shown);
        }
    }

    #[test]
    fn a_time_is_told_from_now() {
        let now = Timestamp::from_secs(1_000);
        assert_eq!(from_now(now, Timestamp::from_secs(820)), "3m ago");
        assert_eq!(from_now(now, Timestamp::from_secs(1_042)), "in 42s");
        assert_eq!(from_now(now, now), "0s ago");
        assert_eq!(from_now(Timestamp::EPOCH, Timestamp::MAX), "in 106751991d");
        assert_eq!(full(now, now), "1970-01-01T00:16:40.000Z (0s ago)");
    }
}
