//! Pauses between tries: longer each time, and never the same in two processes.

use std::time::Duration;

use poolwright_core::Chance;

/// Doubles from `min` to `max`; the upper half of each pause is left to chance.
#[derive(Debug)]
pub(crate) struct Backoff {
    min: Duration,
    max: Duration,
    failures: u32,
    chance: Chance,
}

impl Backoff {
    pub(crate) const fn new(min: Duration, max: Duration, chance: Chance) -> Self {
        Self { min, max, failures: 0, chance }
    }

    /// How long to wait after one more failure.
    pub(crate) fn next(&mut self) -> Duration {
        let full = self.min.saturating_mul(1 << self.failures.min(20)).min(self.max);
        self.failures = self.failures.saturating_add(1);
        full.mul_f64(0.5 + self.chance.roll() / 2.0)
    }

    /// It worked: the next failure is a first one again.
    pub(crate) const fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_longest_and_begin_again_after_a_success() {
        let (min, max) = (Duration::from_millis(100), Duration::from_secs(1));
        let mut backoff = Backoff::new(min, max, Chance::seeded(5));
        for full in [100, 200, 400, 800, 1_000, 1_000] {
            let pause = backoff.next().as_millis();
            assert!((full / 2..=full).contains(&pause), "{pause} ms, expected {full} ms or up to half less");
        }
        backoff.reset();
        assert!(backoff.next() <= min);
    }
}
