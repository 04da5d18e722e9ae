//! Chance as an argument: a seedable source of random numbers that many parts can share.

use std::sync::{Arc, Mutex, PoisonError};

use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};

/// A shared source of random numbers. Cloning shares the sequence.
///
/// Production uses [`Chance::from_entropy`]; tests use [`Chance::seeded`] and get the same run twice.
#[derive(Clone, Debug)]
pub struct Chance(Arc<Mutex<SmallRng>>);

impl Chance {
    /// A source whose sequence follows from the seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(SmallRng::seed_from_u64(seed))))
    }

    /// A source seeded by the operating system.
    #[must_use]
    pub fn from_entropy() -> Self {
        Self::seeded(uuid::Uuid::new_v4().as_u64_pair().0)
    }

    /// The next number.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.with(|rng| rng.next_u64())
    }

    /// A number in `0.0 .. 1.0`.
    #[must_use]
    pub fn roll(&self) -> f64 {
        self.with(|rng| rng.random::<f64>())
    }

    /// As many random bytes as the caller's array holds.
    #[must_use]
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.with(|rng| rng.fill_bytes(&mut bytes));
        bytes
    }

    fn with<T>(&self, draw: impl FnOnce(&mut SmallRng) -> T) -> T {
        // A panic while drawing cannot leave the generator half changed in a way that matters.
        draw(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_sequence() {
        let (a, b) = (Chance::seeded(1), Chance::seeded(1));
        assert_eq!((a.next(), a.next()), (b.next(), b.next()));
        assert!((0.0..1.0).contains(&a.roll()));
    }
}
