//! What a figure has to reach, and whether it does.

use std::fmt;

use super::ratio::Spread;

/// A bar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bar {
    /// Larger is better.
    AtLeast(f64),
    /// Smaller is better.
    AtMost(f64),
}

/// How a figure stands to its bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The median and the middle half of the rounds meet it.
    Holds,
    /// The bar lies within the middle half of the rounds: another run may say the opposite.
    OnTheEdge,
    /// The median and the middle half of the rounds miss it.
    DoesNotHold,
}

impl Bar {
    /// Holds a figure against the bar.
    pub(crate) fn judge(self, figure: &Spread) -> Mark {
        let (low, high) = figure.middle;
        let met = [low, high, figure.median].map(|value| self.is_met_by(value));
        match met {
            [true, true, true] => Mark::Holds,
            [false, false, false] => Mark::DoesNotHold,
            _ => Mark::OnTheEdge,
        }
    }

    fn is_met_by(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bar) => value >= bar,
            Self::AtMost(bar) => value <= bar,
        }
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(bar) => write!(f, "≥ {bar}"),
            Self::AtMost(bar) => write!(f, "≤ {bar}"),
        }
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Holds => "holds",
            Self::OnTheEdge => "on the edge",
            Self::DoesNotHold => "does not hold",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(bar: Bar, rounds: &[f64]) -> Mark {
        bar.judge(&Spread::of(rounds).unwrap())
    }

    #[test]
    fn one_bad_round_of_five_is_forgiven_and_a_second_is_the_edge() {
        assert_eq!(judge(Bar::AtLeast(4.0), &[5.0, 3.0, 5.0, 5.0, 4.0]), Mark::Holds);
        assert_eq!(judge(Bar::AtLeast(4.0), &[5.0, 3.0, 3.0, 5.0, 5.0]), Mark::OnTheEdge);
        assert_eq!(judge(Bar::AtLeast(4.0), &[3.0, 3.0, 3.0, 3.0, 5.0]), Mark::DoesNotHold);
    }

    #[test]
    fn a_ceiling_is_met_from_below() {
        assert_eq!(judge(Bar::AtMost(0.3), &[0.2]), Mark::Holds);
        assert_eq!(judge(Bar::AtMost(0.3), &[0.3]), Mark::Holds);
        assert_eq!(judge(Bar::AtMost(0.3), &[0.31]), Mark::DoesNotHold);
    }
}
