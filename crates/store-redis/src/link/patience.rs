//! Whether it pays that a caller looks for its answer itself.
//!
//! It does while answers come sooner than a sleeping thread would wake. Where they do not, looking costs a processor its time,
//! so it is tried ever more seldom: after each miss twice as many calls sleep before one tries again.
//!
//! Invariant: of calls that all miss, at most one in [`REST_MAX`] looks in vain in the long run.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How many calls sleep between two that try, at most.
const REST_MAX: u32 = 256;

/// A connection on which nobody asked anything for this long has fallen asleep: one call alone wins nothing by being awake.
const ASLEEP_AFTER: Duration = Duration::from_millis(1);

/// What was learned on one connection.
#[derive(Debug)]
pub(super) struct Patience {
    most: Duration,
    /// How many calls sleep before one tries again.
    rest: AtomicU32,
    /// How many will after the next miss.
    next_rest: AtomicU32,
}

impl Patience {
    /// For at most this long a time a call. Zero is never.
    pub(super) const fn new(most: Duration) -> Self {
        Self { most, rest: AtomicU32::new(0), next_rest: AtomicU32::new(1) }
    }

    /// For how long the next call shall look. The connection has been quiet for `quiet`, and `others` wait on it.
    pub(super) fn of_next(&self, quiet: Duration, others: usize) -> Option<Duration> {
        if self.most.is_zero() || others > 0 || quiet > ASLEEP_AFTER {
            return None;
        }
        // Two calls at once may count one: it is a measure and no promise.
        let rest = self.rest.load(Ordering::Relaxed);
        if rest > 0 {
            self.rest.store(rest - 1, Ordering::Relaxed);
            return None;
        }
        Some(self.most)
    }

    /// A call that looked saw its answer.
    pub(super) fn hit(&self) {
        self.next_rest.store(1, Ordering::Relaxed);
    }

    /// A call looked in vain.
    pub(super) fn missed(&self) {
        let rest = self.next_rest.load(Ordering::Relaxed);
        self.rest.store(rest, Ordering::Relaxed);
        self.next_rest.store((rest * 2).min(REST_MAX), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_micros(150);

    fn tries(patience: &Patience, calls: u32, hit: impl Fn(u32) -> bool) -> u32 {
        (0..calls)
            .filter(|call| {
                let looked = patience.of_next(Duration::ZERO, 0).is_some();
                if looked && hit(*call) {
                    patience.hit();
                } else if looked {
                    patience.missed();
                }
                looked
            })
            .count()
            .try_into()
            .unwrap()
    }

    #[test]
    fn a_call_looks_as_long_as_calls_before_it_saw_their_answers() {
        let patience = Patience::new(MOST);
        assert_eq!(patience.of_next(Duration::ZERO, 0), Some(MOST));
        assert_eq!(tries(&patience, 1_000, |_| true), 1_000);
    }

    #[test]
    fn calls_that_look_in_vain_become_rare() {
        let patience = Patience::new(MOST);
        assert_eq!(tries(&patience, REST_MAX * 2, |_| false), 9, "1, 2, 4 … calls sleep between them");
        assert_eq!(tries(&patience, (REST_MAX + 1) * 10, |_| false), 10);
    }

    #[test]
    fn one_answer_seen_in_time_brings_the_patience_back() {
        let patience = Patience::new(MOST);
        tries(&patience, 10_000, |_| false);
        assert!(tries(&patience, REST_MAX + 1, |_| true) > 0);
        assert_eq!(tries(&patience, 100, |_| true), 100);
    }

    #[test]
    fn a_call_among_others_or_after_a_silence_does_not_look() {
        let patience = Patience::new(MOST);
        assert_eq!(patience.of_next(Duration::ZERO, 1), None);
        assert_eq!(patience.of_next(ASLEEP_AFTER * 2, 0), None);
    }

    #[test]
    fn no_patience_never_looks() {
        assert_eq!(Patience::new(Duration::ZERO).of_next(Duration::ZERO, 0), None);
    }
}
