//! Medians, spreads and ratios of what rounds gave.

/// A value over the rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    /// The median; of a ratio, that of the medians.
    pub(crate) median: f64,
    /// The least of all rounds.
    pub(crate) least: f64,
    /// The largest of all rounds.
    pub(crate) most: f64,
    /// The middle half of the rounds: without the lowest and the highest quarter.
    pub(crate) middle: (f64, f64),
}

impl Spread {
    /// Of one value a round; none without rounds.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (&least, &most) = (sorted.first()?, sorted.last()?);
        let cut = sorted.len() / 4;
        let middle = (sorted[cut], sorted[sorted.len() - 1 - cut]);
        Some(Self { median: median(&sorted), least, most, middle })
    }

    /// Of the ratio of two systems that were measured in the same rounds.
    pub(crate) fn of_ratio(over: &[f64], under: &[f64]) -> Option<Self> {
        let ratios: Vec<f64> = over.iter().zip(under).map(|(over, under)| over / under).collect();
        let (over, under) = (Self::of(over)?, Self::of(under)?);
        Some(Self { median: over.median / under.median, ..Self::of(&ratios)? })
    }
}

fn median(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[half] } else { f64::midpoint(sorted[half - 1], sorted[half]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_two_in_the_middle() {
        let spread = Spread::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((spread.median, spread.least, spread.most), (2.5, 1.0, 4.0));
        assert_eq!(spread.middle, (2.0, 3.0));
    }

    #[test]
    fn the_middle_half_of_five_rounds_leaves_out_the_best_and_the_worst() {
        let spread = Spread::of(&[9.0, 1.0, 5.0, 6.0, 4.0]).unwrap();
        assert_eq!((spread.median, spread.middle), (5.0, (4.0, 6.0)));
    }

    #[test]
    fn one_round_is_all_there_is() {
        assert_eq!(
            Spread::of(&[7.0]),
            Some(Spread { median: 7.0, least: 7.0, most: 7.0, middle: (7.0, 7.0) })
        );
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn a_ratio_is_that_of_the_medians_and_spreads_as_the_rounds_do() {
        let spread = Spread::of_ratio(&[10.0, 20.0, 60.0], &[10.0, 10.0, 20.0]).unwrap();
        assert_eq!((spread.median, spread.least, spread.most), (2.0, 1.0, 3.0));
    }
}
