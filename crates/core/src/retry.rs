//! How long to wait before the next try.

use std::time::Duration;

/// The longest delay that any policy gives: 365 days. It keeps arithmetic far from overflow.
pub const DELAY_MAX: Duration = Duration::from_secs(365 * 86_400);

/// A retry policy, as `[retry.NAME]` of the file declares it.
#[derive(Debug, Clone, PartialEq)]
pub enum RetryPolicy {
    /// asynq's own: `n^4 + 15 + random(0..=29) * (n + 1)` seconds.
    Asynq,
    /// `base * factor^n`, at most `max`, spread by `± jitter`.
    Exponential {
        /// Delay before the first retry.
        base: Duration,
        /// Growth from one retry to the next, at least 1.
        factor: f64,
        /// Share of the delay by which it is spread to both sides, 0 to 1.
        jitter: f64,
        /// Upper bound before the spread.
        max: Duration,
    },
    /// The delays one after another; the last one for all later retries.
    Steps {
        /// At least one.
        delays: Vec<Duration>,
    },
    /// `step * (n + 1)`, at most `max`.
    Linear {
        /// Delay before the first retry, and growth.
        step: Duration,
        /// Upper bound.
        max: Duration,
    },
    /// Always the same.
    Fixed {
        /// The delay.
        delay: Duration,
    },
}

impl RetryPolicy {
    /// The delay before retry number `retried + 1`.
    ///
    /// `retried` counts the retries already used; `roll` is a random number in `0.0 .. 1.0`.
    #[must_use]
    pub fn delay(&self, retried: u32, roll: f64) -> Duration {
        let roll = roll.clamp(0.0, 1.0);
        let delay = match self {
            Self::Asynq => {
                let n = f64::from(retried);
                let spread = (roll * 30.0).floor().min(29.0);
                secs(n.powi(4) + 15.0 + spread * (n + 1.0))
            }
            Self::Exponential { base, factor, jitter, max } => {
                let exponent = i32::try_from(retried).unwrap_or(i32::MAX);
                let plain = (base.as_secs_f64() * factor.powi(exponent)).min(max.as_secs_f64());
                secs(plain * (1.0 + jitter * (2.0 * roll - 1.0)))
            }
            Self::Steps { delays } => {
                let last = delays.len().saturating_sub(1);
                delays.get((retried as usize).min(last)).copied().unwrap_or_default()
            }
            Self::Linear { step, max } => step.saturating_mul(retried.saturating_add(1)).min(*max),
            Self::Fixed { delay } => *delay,
        };
        delay.min(DELAY_MAX)
    }
}

fn secs(value: f64) -> Duration {
    // NaN and infinity come from absurd factors; they mean "as late as possible".
    Duration::try_from_secs_f64(value.max(0.0)).unwrap_or(DELAY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn asynq_delays_lie_in_the_published_ranges() {
        for (n, low, high) in [(0, 15, 44), (1, 16, 74), (2, 31, 118), (3, 96, 212), (4, 271, 416)] {
            assert_eq!(RetryPolicy::Asynq.delay(n, 0.0), S(low));
            assert_eq!(RetryPolicy::Asynq.delay(n, 0.999_999), S(high));
        }
    }

    #[test]
    fn exponential_grows_is_bounded_and_spread() {
        let policy = RetryPolicy::Exponential { base: S(10), factor: 2.0, jitter: 0.15, max: S(3_600) };
        assert_eq!(policy.delay(0, 0.5), S(10));
        assert_eq!(policy.delay(2, 0.5), S(40));
        assert_eq!(policy.delay(0, 0.0), Duration::from_millis(8_500));
        assert_eq!(policy.delay(60, 0.5), S(3_600));
        assert_eq!(policy.delay(u32::MAX, 0.5), S(3_600));
    }

    #[test]
    fn steps_stay_on_the_last_and_linear_on_the_bound() {
        let steps = RetryPolicy::Steps { delays: vec![S(30), S(120)] };
        assert_eq!((0..4).map(|n| steps.delay(n, 0.3).as_secs()).collect::<Vec<_>>(), [30, 120, 120, 120]);
        let linear = RetryPolicy::Linear { step: S(5), max: S(30) };
        assert_eq!(
            (0..8).map(|n| linear.delay(n, 0.3).as_secs()).collect::<Vec<_>>(),
            [5, 10, 15, 20, 25, 30, 30, 30]
        );
    }

    #[test]
    fn absurd_values_give_the_longest_delay_and_no_panic() {
        assert_eq!(RetryPolicy::Asynq.delay(u32::MAX, 0.5), DELAY_MAX);
        let wild = RetryPolicy::Exponential { base: S(1), factor: 1e300, jitter: 1.0, max: Duration::MAX };
        assert_eq!(wild.delay(9, 1.0), DELAY_MAX);
    }
}
