//! The weighted draw of queues, one order for every free worker.
//!
//! Invariant: the first place of an order falls to a queue with probability weight / sum of weights; an order names
//! every queue once, so an empty one never blocks another.

use split_mix::SplitMix;

/// Draws orders of queues by weight. The same seed and weights give the same orders in every store.
#[derive(Debug, Clone)]
pub struct Lottery {
    random: SplitMix,
    weights: Vec<u32>,
    order: Vec<usize>,
}

impl Lottery {
    /// A lottery over queues with these weights. A weight of 0 counts as 1.
    #[must_use]
    pub fn new(seed: u64, weights: impl IntoIterator<Item = u32>) -> Self {
        let weights: Vec<u32> = weights.into_iter().map(|w| w.max(1)).collect();
        Self { random: SplitMix(seed), order: Vec::with_capacity(weights.len()), weights }
    }

    /// The next order: indices into the weights given, each once.
    pub fn draw(&mut self) -> &[usize] {
        self.order.clear();
        self.order.extend(0..self.weights.len());
        let mut left: u64 = self.weights.iter().map(|&w| u64::from(w)).sum();
        for place in 0..self.order.len() {
            let mut ticket = self.random.below(left);
            let mut winner = place;
            for at in place..self.order.len() {
                let weight = u64::from(self.weights[self.order[at]]);
                if ticket < weight {
                    winner = at;
                    break;
                }
                ticket -= weight;
            }
            self.order.swap(place, winner);
            left -= u64::from(self.weights[self.order[place]]);
        }
        &self.order
    }
}

mod split_mix {
    //! SplitMix64: a tiny generator whose sequence is fixed by its definition, so that orders do not change with
    //! the version of a random number library.

    #[derive(Debug, Clone)]
    pub(super) struct SplitMix(pub(super) u64);

    impl SplitMix {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }

        /// A number below `bound`, by multiplication instead of a remainder; the bias is below 2^-32.
        pub(super) fn below(&mut self, bound: u64) -> u64 {
            u64::try_from((u128::from(self.next()) * u128::from(bound)) >> 64).unwrap_or(0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_names_every_queue_once() {
        let mut lottery = Lottery::new(1, [3, 1, 2, 1]);
        for _ in 0..100 {
            let mut order = lottery.draw().to_vec();
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3]);
        }
        assert!(Lottery::new(1, []).draw().is_empty());
    }

    #[test]
    fn the_first_place_falls_by_weight() {
        let mut lottery = Lottery::new(42, [3, 1]);
        let first = (0..40_000).filter(|_| lottery.draw()[0] == 0).count();
        assert!((29_500..30_500).contains(&first), "{first} of 40000 first places for weight 3 of 4");
    }

    #[test]
    fn the_same_seed_draws_the_same_orders() {
        let (mut a, mut b) = (Lottery::new(9, [1, 2, 3]), Lottery::new(9, [1, 2, 3]));
        for _ in 0..50 {
            assert_eq!(a.draw(), b.draw());
        }
    }
}
