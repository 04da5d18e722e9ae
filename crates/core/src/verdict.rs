//! The one judge of an attempt: from how it ended to what becomes of the task.
//!
//! The settle path, the dead-letter layer ("would this be final?") and the reclaim loop ask it. No script and no SQL
//! judges.
//!
//! | how it ended | attempts left | becomes |
//! | --- | --- | --- |
//! | success | | `Complete` |
//! | transient, timed out, panicked | yes | `Retry`, uses a retry |
//! | the same | no, or past the deadline | `Archive` |
//! | permanent, undecodable | | `Archive` |
//! | rate limited, lock conflict, snoozed | deferrals left | `Retry`, uses a deferral |
//! | the same | none left | as transient |
//! | crashed | crashes left | `Retry` at once, uses a crash |
//! | the same | none left | `Archive` |
//! | no handler | | `Retry`, uses nothing, never final |
//! | revoked | | `Discard` |
//! | cancelled | | `Discard`, or as the type's `on_cancel` says |
//! | needs an operator | | `Hold` |
//! | worker is stopping | | `Release` |

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::error::describe;
use crate::text::error_text;
use crate::{Class, Next, RetryPolicy, Timestamp};

/// The delay before a task without a handler is offered again, unless the type's policy for `no_handler` says otherwise.
pub const NO_HANDLER_DELAY: Duration = Duration::from_secs(15);

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// The handler succeeded.
    Done {
        /// What it returned to be kept.
        result: Option<Bytes>,
    },
    /// It did not.
    Failed {
        /// The kind of trouble.
        class: Class,
        /// The delay that the error asked for.
        after: Option<Duration>,
        /// What was said.
        error: String,
    },
    /// The worker stops and gives it back.
    Released,
}

impl End {
    /// A failure with this error: its class and delay by [`Next::of`], its text as it is stored.
    ///
    /// Whoever asks the judge about one error gets the same facts from here.
    #[must_use]
    pub fn failed(error: &(dyn std::error::Error + 'static)) -> Self {
        let Next { class, after } = Next::of(error);
        Self::Failed { class, after, error: error_text(&describe(error)) }
    }
}

/// The facts about one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// Retries used before it.
    pub retried: u32,
    /// Retries allowed.
    pub max_retry: u32,
    /// Deferrals in a row before it.
    pub deferrals: u32,
    /// Expired leases before it.
    pub crashes: u32,
    /// After this time the task is not tried any more.
    pub deadline: Option<Timestamp>,
    /// How long it is kept after success.
    pub retention: Duration,
}

/// The rules of a task type.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// For classes that `on_error` does not name.
    pub retry: RetryPolicy,
    /// By error class.
    pub on_error: BTreeMap<Class, RetryPolicy>,
    /// What becomes of a cancelled attempt.
    pub on_cancel: OnCancel,
    /// Expired leases before it is archived; 0: never run again after one.
    pub max_crashes: u32,
    /// Deferrals in a row before one counts as a failure.
    pub max_deferrals: u32,
}

/// asynq's delays, three crashes, a hundred deferrals in a row; a cancelled task is gone.
impl Default for Policy {
    fn default() -> Self {
        Self {
            retry: RetryPolicy::Asynq,
            on_error: BTreeMap::new(),
            on_cancel: OnCancel::Discard,
            max_crashes: 3,
            max_deferrals: 100,
        }
    }
}

impl Policy {
    fn of(&self, class: Class) -> &RetryPolicy {
        self.on_error.get(&class).unwrap_or(&self.retry)
    }
}

/// What becomes of a task whose running attempt is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnCancel {
    /// Gone, with no dead letter.
    #[default]
    Discard,
    /// A failure like any other, as in asynq.
    Retry,
    /// Archived, with a dead letter.
    Archive,
}

/// What a retry costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Charge {
    /// One of `max_retry`; deferrals start again at zero. Counted as failed.
    Retry,
    /// One of `max_deferrals`.
    Deferral,
    /// One of `max_crashes`.
    Crash,
    /// Nothing.
    Nothing,
}

/// What a store does with a claimed task. It obeys and does not judge.
#[derive(Debug, Clone, PartialEq)]
pub enum Settlement {
    /// Success: kept for `retain_for`, or gone when that is zero.
    Complete {
        /// How long it is kept.
        retain_for: Duration,
        /// What it returned; none leaves what the handler stored meanwhile.
        result: Option<Bytes>,
    },
    /// Again later; at once (to the end of its queue) when `after` is zero.
    Retry {
        /// The store adds its own clock.
        after: Duration,
        /// What was said.
        error: String,
        /// The kind of trouble.
        class: Class,
        /// What it costs.
        charge: Charge,
    },
    /// Failed for good; kept for an operator.
    Archive {
        /// What was said.
        error: String,
        /// The kind of trouble.
        class: Class,
    },
    /// Cancelled or revoked: gone, no dead letter.
    Discard,
    /// Shutdown: back to the front of its queue, in its old order; nothing is used.
    Release,
    /// Released, and its queue paused with this reason, in one step.
    Hold {
        /// Why.
        reason: String,
    },
}

impl Settlement {
    /// The task failed for good: a dead letter is due once the store has accepted it.
    #[must_use]
    pub const fn is_dead(&self) -> bool {
        matches!(self, Self::Archive { .. })
    }
}

/// Decides what becomes of an attempt.
///
/// `now` is only held against the deadline; `roll` (0.0 .. 1.0) spreads the delay.
#[must_use]
pub fn judge(end: End, attempt: &Attempt, policy: &Policy, now: Timestamp, roll: f64) -> Settlement {
    let (class, asked, error) = match end {
        End::Done { result } => return Settlement::Complete { retain_for: attempt.retention, result },
        End::Released => return Settlement::Release,
        End::Failed { class, after, error } => (class, after, error),
    };
    let case = Case { attempt, policy, now, roll, class, asked };
    match class {
        Class::Revoked => Settlement::Discard,
        Class::NeedsOperator => Settlement::Hold { reason: error },
        Class::Permanent | Class::Undecodable | Class::Operator => Settlement::Archive { error, class },
        Class::NoHandler => {
            let after = asked.unwrap_or_else(|| match policy.on_error.get(&class) {
                Some(retry) => retry.delay(0, roll),
                None => NO_HANDLER_DELAY,
            });
            Settlement::Retry { after, error, class, charge: Charge::Nothing }
        }
        Class::Cancelled => match policy.on_cancel {
            OnCancel::Discard => Settlement::Discard,
            OnCancel::Archive => Settlement::Archive { error, class },
            OnCancel::Retry => case.failure(error),
        },
        Class::Crashed => case.crash(error),
        Class::RateLimited | Class::LockConflict | Class::Snoozed => case.deferral(error),
        Class::Transient | Class::TimedOut | Class::Panicked => case.failure(error),
    }
}

struct Case<'a> {
    attempt: &'a Attempt,
    policy: &'a Policy,
    now: Timestamp,
    roll: f64,
    class: Class,
    asked: Option<Duration>,
}

impl Case<'_> {
    fn failure(&self, error: String) -> Settlement {
        let class = self.class;
        let after = self.delay(self.attempt.retried);
        if self.attempt.retried >= self.attempt.max_retry || self.is_too_late(after) {
            return Settlement::Archive { error, class };
        }
        Settlement::Retry { after, error, class, charge: Charge::Retry }
    }

    fn deferral(&self, error: String) -> Settlement {
        if self.attempt.deferrals >= self.policy.max_deferrals {
            return self.failure(error);
        }
        let after = self.delay(self.attempt.deferrals);
        if self.is_too_late(after) {
            return Settlement::Archive { error, class: self.class };
        }
        Settlement::Retry { after, error, class: self.class, charge: Charge::Deferral }
    }

    /// A worker that died says nothing about the task, so the first take-over runs it at once; one that keeps
    /// killing its workers is archived.
    fn crash(&self, error: String) -> Settlement {
        let class = self.class;
        if self.attempt.crashes >= self.policy.max_crashes || self.is_too_late(Duration::ZERO) {
            return Settlement::Archive { error, class };
        }
        let after = self
            .policy
            .on_error
            .get(&class)
            .map_or(Duration::ZERO, |retry| retry.delay(self.attempt.crashes, self.roll));
        Settlement::Retry { after, error, class, charge: Charge::Crash }
    }

    fn delay(&self, used: u32) -> Duration {
        self.asked.unwrap_or_else(|| self.policy.of(self.class).delay(used, self.roll))
    }

    fn is_too_late(&self, after: Duration) -> bool {
        self.attempt.deadline.is_some_and(|deadline| self.now + after >= deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_000);

    fn attempt() -> Attempt {
        Attempt {
            retried: 0,
            max_retry: 3,
            deferrals: 0,
            crashes: 0,
            deadline: None,
            retention: Duration::ZERO,
        }
    }

    fn policy() -> Policy {
        Policy { retry: RetryPolicy::Fixed { delay: Duration::from_secs(7) }, ..Policy::default() }
    }

    fn failed(class: Class) -> End {
        End::Failed { class, after: None, error: "no".into() }
    }

    fn verdict(class: Class, attempt: Attempt) -> Settlement {
        judge(failed(class), &attempt, &policy(), NOW, 0.5)
    }

    fn charge(settlement: &Settlement) -> Option<(Charge, u64)> {
        match settlement {
            Settlement::Retry { charge, after, .. } => Some((*charge, after.as_secs())),
            _ => None,
        }
    }

    #[test]
    fn success_completes_with_the_tasks_retention() {
        let attempt = Attempt { retention: Duration::from_secs(60), ..attempt() };
        let end = End::Done { result: Some(Bytes::from_static(b"1")) };
        assert_eq!(
            judge(end, &attempt, &policy(), NOW, 0.0),
            Settlement::Complete {
                retain_for: Duration::from_secs(60),
                result: Some(Bytes::from_static(b"1"))
            }
        );
    }

    #[test]
    fn failures_are_retried_until_the_last_and_then_archived() {
        for class in [Class::Transient, Class::TimedOut, Class::Panicked] {
            assert_eq!(charge(&verdict(class, attempt())), Some((Charge::Retry, 7)));
            assert!(verdict(class, Attempt { retried: 3, ..attempt() }).is_dead());
        }
    }

    #[test]
    fn permanent_and_undecodable_are_archived_at_once() {
        assert!(verdict(Class::Permanent, attempt()).is_dead());
        assert!(verdict(Class::Undecodable, attempt()).is_dead());
    }

    #[test]
    fn deferrals_use_no_retry_until_there_were_too_many_in_a_row() {
        let last_try = Attempt { retried: 3, ..attempt() };
        for class in [Class::RateLimited, Class::LockConflict, Class::Snoozed] {
            assert_eq!(charge(&verdict(class, last_try)), Some((Charge::Deferral, 7)));
            assert!(verdict(class, Attempt { deferrals: 100, ..last_try }).is_dead());
            let counted = verdict(class, Attempt { deferrals: 100, ..attempt() });
            assert_eq!(charge(&counted), Some((Charge::Retry, 7)));
        }
    }

    #[test]
    fn a_failure_is_read_off_its_error() {
        let error = crate::TaskError::rate_limited(Duration::from_secs(9), "é".repeat(9_000));
        let End::Failed { class, after, error } = End::failed(&error) else { panic!("expected a failure") };
        assert_eq!((class, after), (Class::RateLimited, Some(Duration::from_secs(9))));
        assert!(error.len() <= crate::text::ERROR_BYTES_MAX && error.ends_with(crate::text::CUT_MARK));
    }

    #[test]
    fn the_errors_own_delay_wins_over_the_policy() {
        let end = End::Failed {
            class: Class::RateLimited,
            after: Some(Duration::from_secs(99)),
            error: "x".into(),
        };
        assert_eq!(charge(&judge(end, &attempt(), &policy(), NOW, 0.5)), Some((Charge::Deferral, 99)));
    }

    #[test]
    fn the_files_policy_for_a_class_wins_over_the_types() {
        let mut policy = policy();
        policy.on_error.insert(Class::LockConflict, RetryPolicy::Fixed { delay: Duration::from_secs(15) });
        let settlement = judge(failed(Class::LockConflict), &attempt(), &policy, NOW, 0.5);
        assert_eq!(charge(&settlement), Some((Charge::Deferral, 15)));
    }

    #[test]
    fn crashes_run_again_at_once_and_are_counted_apart() {
        let exhausted = Attempt { retried: 3, crashes: 2, ..attempt() };
        assert_eq!(charge(&verdict(Class::Crashed, exhausted)), Some((Charge::Crash, 0)));
        assert!(verdict(Class::Crashed, Attempt { crashes: 3, ..attempt() }).is_dead());
        let never_again = Policy { max_crashes: 0, ..policy() };
        assert!(judge(failed(Class::Crashed), &attempt(), &never_again, NOW, 0.5).is_dead());
    }

    #[test]
    fn a_task_without_a_handler_is_never_archived_for_it() {
        let worst = Attempt { retried: 99, deferrals: 999, crashes: 99, ..attempt() };
        assert_eq!(charge(&verdict(Class::NoHandler, worst)), Some((Charge::Nothing, 15)));
    }

    #[test]
    fn cancelling_follows_the_types_word() {
        let with = |on_cancel| {
            judge(failed(Class::Cancelled), &attempt(), &Policy { on_cancel, ..policy() }, NOW, 0.5)
        };
        assert_eq!(with(OnCancel::Discard), Settlement::Discard);
        assert!(with(OnCancel::Archive).is_dead());
        assert_eq!(charge(&with(OnCancel::Retry)), Some((Charge::Retry, 7)));
    }

    #[test]
    fn a_retry_that_would_start_past_the_deadline_is_archived_now() {
        let at = |secs| Attempt { deadline: Some(Timestamp::from_secs(secs)), ..attempt() };
        assert!(verdict(Class::Transient, at(1_007)).is_dead());
        assert_eq!(charge(&verdict(Class::Transient, at(1_008))), Some((Charge::Retry, 7)));
        assert!(verdict(Class::Snoozed, at(1_001)).is_dead());
    }

    #[test]
    fn revoked_is_gone_released_goes_back_and_an_operator_holds_the_queue() {
        assert_eq!(verdict(Class::Revoked, attempt()), Settlement::Discard);
        assert_eq!(judge(End::Released, &attempt(), &policy(), NOW, 0.0), Settlement::Release);
        assert_eq!(verdict(Class::NeedsOperator, attempt()), Settlement::Hold { reason: "no".into() });
    }
}
