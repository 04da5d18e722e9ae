//! Where an attempt stands between its start and its end, and when somebody must look at it again.
//!
//! ```text
//!   running ──► asked to end ──► dropped ──► stalled ──► given up
//!      │  timeout,   │  stop_grace   │  slack     │  max_stall
//!      │  cancel, …  │  + slack      │            │  since asked
//!      └─────────────┴───────────────┴────────────┴──────────────► over: its handler is gone, or somebody decided for it
//! ```
//!
//! Invariant: an attempt is over once. Who gets it over decides its end; whoever comes later changes nothing.

use std::time::Duration;

use poolwright_core::{Class, Timestamp};

use crate::Options;

/// Why an attempt was asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Somebody cancelled its task.
    Cancelled,
    /// Its timeout or deadline passed.
    TimedOut,
    /// A later attempt owns its task.
    Lost,
    /// The worker stops.
    Stopping,
}

impl Stop {
    /// What the handler is told; none: only that it should end.
    pub(crate) const fn class(self) -> Option<Class> {
        match self {
            Self::Cancelled => Some(Class::Cancelled),
            Self::TimedOut => Some(Class::TimedOut),
            Self::Lost => Some(Class::Crashed),
            Self::Stopping => None,
        }
    }
}

/// What has to be done with an attempt now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing, until then if it has a bound at all.
    Wait(Option<Timestamp>),
    /// Its time is over: ask it to end.
    TimeOut,
    /// It did not end when asked: drop it.
    Drop,
    /// It cannot be dropped: its thread is blocked.
    Stall,
    /// It was stalled for too long: settle its task without it.
    GiveUp,
}

/// How patient to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    before_drop: Duration,
    before_stall: Duration,
    before_give_up: Duration,
}

impl Patience {
    pub(crate) fn of(options: &Options) -> Self {
        Self {
            before_drop: options.stop_grace + options.slack,
            before_stall: options.slack,
            before_give_up: options.max_stall,
        }
    }
}

/// Where one attempt stands.
#[derive(Debug)]
pub(crate) struct Stage {
    runs_until: Option<Timestamp>,
    asked: Option<(Stop, Timestamp)>,
    dropped: Option<Timestamp>,
    is_stalled: bool,
    is_over: bool,
}

impl Stage {
    pub(crate) const fn new(runs_until: Option<Timestamp>) -> Self {
        Self { runs_until, asked: None, dropped: None, is_stalled: false, is_over: false }
    }

    /// Why it was asked to end, if it was.
    pub(crate) fn stop(&self) -> Option<Stop> {
        self.asked.map(|(stop, _)| stop)
    }

    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// It was dropped, or is to be as soon as it can be.
    pub(crate) const fn is_dropped(&self) -> bool {
        self.dropped.is_some()
    }

    pub(crate) const fn is_stalled(&self) -> bool {
        self.is_stalled
    }

    /// Asks it to end; false when it is over. The first reason stays, but for a lost lease: what a lost attempt
    /// says does not count any more, whatever it was asked before.
    pub(crate) fn ask(&mut self, stop: Stop, now: Timestamp) -> bool {
        if self.is_over {
            return false;
        }
        let since = self.asked.map_or(now, |(_, since)| since);
        if self.asked.is_none() || stop == Stop::Lost {
            self.asked = Some((stop, since));
        }
        true
    }

    /// It is dropped now, out of turn.
    pub(crate) fn hurry(&mut self, now: Timestamp) {
        self.dropped.get_or_insert(now);
    }

    /// It is over; false when it was over before.
    pub(crate) const fn end(&mut self) -> bool {
        !std::mem::replace(&mut self.is_over, true)
    }

    /// Its handler is gone; true when it was stalled until now.
    pub(crate) const fn come_back(&mut self) -> bool {
        std::mem::replace(&mut self.is_stalled, false)
    }

    /// What is due now. A step that is due is noted as taken.
    pub(crate) fn step(&mut self, now: Timestamp, patience: Patience) -> Step {
        if self.is_over {
            return Step::Wait(None);
        }
        let (at, step) = match (self.asked, self.dropped) {
            (None, None) => match self.runs_until {
                None => return Step::Wait(None),
                Some(until) => (until, Step::TimeOut),
            },
            (Some((_, since)), None) => (since + patience.before_drop, Step::Drop),
            (_, Some(dropped)) if !self.is_stalled => (dropped + patience.before_stall, Step::Stall),
            (asked, Some(dropped)) => {
                let since = asked.map_or(dropped, |(_, since)| since);
                (since + patience.before_give_up, Step::GiveUp)
            }
        };
        if now < at {
            return Step::Wait(Some(at));
        }
        match step {
            Step::Drop => self.dropped = Some(now),
            Step::Stall => self.is_stalled = true,
            Step::Wait(_) | Step::TimeOut | Step::GiveUp => {}
        }
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    fn patience() -> Patience {
        Patience::of(&Options::default())
    }

    #[test]
    fn an_attempt_that_ignores_everything_goes_the_whole_way() {
        let mut stage = Stage::new(Some(at(100)));
        assert_eq!(stage.step(at(99), patience()), Step::Wait(Some(at(100))));
        assert_eq!(stage.step(at(100), patience()), Step::TimeOut);
        assert!(stage.ask(Stop::TimedOut, at(100)));
        assert_eq!(stage.step(at(105), patience()), Step::Wait(Some(at(106))));
        assert_eq!(stage.step(at(106), patience()), Step::Drop);
        assert_eq!(stage.step(at(106), patience()), Step::Wait(Some(at(107))));
        assert_eq!(stage.step(at(107), patience()), Step::Stall);
        assert!(stage.is_stalled());
        assert_eq!(stage.step(at(108), patience()), Step::Wait(Some(at(700))));
        assert_eq!(stage.step(at(700), patience()), Step::GiveUp);
        assert!(stage.end() && !stage.end());
        assert_eq!(stage.step(at(9_999), patience()), Step::Wait(None));
        assert!(stage.come_back() && !stage.come_back());
    }

    #[test]
    fn without_a_limit_it_runs_until_it_is_asked() {
        let mut stage = Stage::new(None);
        assert_eq!(stage.step(at(1_000_000), patience()), Step::Wait(None));
        stage.ask(Stop::Cancelled, at(1_000_000));
        assert_eq!(stage.step(at(1_000_000), patience()), Step::Wait(Some(at(1_000_006))));
    }

    #[test]
    fn the_first_reason_stays_but_a_lost_lease_overrules_it() {
        let mut stage = Stage::new(None);
        stage.ask(Stop::TimedOut, at(1));
        stage.ask(Stop::Cancelled, at(2));
        assert_eq!(stage.stop(), Some(Stop::TimedOut));
        stage.ask(Stop::Lost, at(3));
        stage.ask(Stop::Stopping, at(4));
        assert_eq!(stage.asked, Some((Stop::Lost, at(1))), "and its time runs from the first");
        stage.end();
        assert!(!stage.ask(Stop::Lost, at(5)));
    }

    #[test]
    fn one_that_is_hurried_is_not_dropped_twice() {
        let mut stage = Stage::new(None);
        stage.ask(Stop::Stopping, at(1));
        stage.hurry(at(1));
        assert_eq!(stage.step(at(1), patience()), Step::Wait(Some(at(2))));
    }
}
