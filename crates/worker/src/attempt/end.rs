//! From what a handler did, and what was asked of it meanwhile, to the end that the judge is told.
//!
//! | asked to end because | returned ok | returned an error | panicked | dropped or given up |
//! | --- | --- | --- | --- | --- |
//! | (not asked) | done | its class | panicked | released |
//! | its time was over | done | its class; transient and cancelled become timed out | panicked | timed out |
//! | it was cancelled | done | cancelled | cancelled | cancelled |
//! | the worker stops | done | its class; transient, cancelled, timed out, panicked are released | released | released |
//! | its lease was lost | none | none | none | none |

use std::any::Any;

use poolwright_core::text::error_text;
use poolwright_core::{BoxError, Class, End, TaskRecord};
use poolwright_handler::Output;

use super::stage::Stop;

/// What became of an attempt's future.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It answered.
    Returned(Result<Output, BoxError>),
    /// It panicked, outside of the guard, with these words.
    Panicked(String),
    /// No service is there for its type.
    NoHandler,
    /// Its deadline had passed before it could start.
    Late,
    /// It was dropped, or never started.
    Dropped,
    /// It blocks a thread and cannot be dropped.
    GivenUp,
}

impl Outcome {
    /// From what a panic was raised with.
    pub(crate) fn panicked(payload: &(dyn Any + Send)) -> Self {
        let words = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let words = words.or_else(|| payload.downcast_ref::<String>().cloned());
        Self::Panicked(words.unwrap_or_else(|| "a panic without words".to_owned()))
    }
}

/// The end of an attempt; none when it does not matter any more, because a later attempt owns the task.
pub(crate) fn of(outcome: Outcome, stop: Option<Stop>, task: &TaskRecord) -> Option<End> {
    if stop == Some(Stop::Lost) {
        return None;
    }
    let own = match outcome {
        Outcome::Returned(Ok(Output { result })) => End::Done { result },
        Outcome::Returned(Err(error)) => End::failed(&*error),
        Outcome::Panicked(words) => {
            failed(Class::Panicked, &format!("panicked outside of the guard: {words}"))
        }
        Outcome::NoHandler => {
            failed(Class::NoHandler, &format!("no handler of this worker knows the type {}", task.task_type))
        }
        Outcome::Late => failed(Class::TimedOut, "its deadline had passed before it could start"),
        Outcome::Dropped => match stop {
            Some(Stop::TimedOut) => failed(Class::TimedOut, &overtime(task, "was dropped")),
            Some(Stop::Cancelled) => failed(Class::Cancelled, "it was cancelled, and dropped"),
            Some(Stop::Stopping | Stop::Lost) | None => End::Released,
        },
        Outcome::GivenUp => match stop {
            Some(Stop::Cancelled) => failed(Class::Cancelled, "it was cancelled, but still blocks a thread"),
            _ => failed(Class::TimedOut, &overtime(task, "still blocks a thread")),
        },
    };
    let End::Failed { class, after, error } = own else { return Some(own) };
    Some(match stop {
        Some(Stop::Cancelled) => End::Failed { class: Class::Cancelled, after: None, error },
        Some(Stop::Stopping) if may_come_of_stopping(class) => End::Released,
        Some(Stop::TimedOut) if matches!(class, Class::Transient | Class::Cancelled) => {
            End::Failed { class: Class::TimedOut, after: None, error }
        }
        _ => End::Failed { class, after, error },
    })
}

fn failed(class: Class, text: &str) -> End {
    End::Failed { class, after: None, error: error_text(text) }
}

/// An error that a handler may give only because it was asked to end: it says nothing about the task.
const fn may_come_of_stopping(class: Class) -> bool {
    matches!(class, Class::Transient | Class::Cancelled | Class::TimedOut | Class::Panicked)
}

fn overtime(task: &TaskRecord, fate: &str) -> String {
    match task.deadline {
        Some(deadline) if task.timeout.is_zero() => format!("ran past its deadline {deadline} and {fate}"),
        Some(deadline) => {
            format!(
                "ran longer than its timeout of {:?} or past its deadline {deadline} and {fate}",
                task.timeout
            )
        }
        None => format!("ran longer than its timeout of {:?} and {fate}", task.timeout),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use poolwright_core::{NewTask, QueueName, State, TaskError, TaskId, Timestamp, TypeName};

    use super::*;

    fn task() -> TaskRecord {
        let (queue, id) = (QueueName::new("q").unwrap(), TaskId::new("a").unwrap());
        let mut new = NewTask::new(queue, id, TypeName::new("x:y").unwrap(), "");
        (new.max_retry, new.timeout) = (3, Duration::from_secs(60));
        TaskRecord { state: State::Active, pending_since: None, ..TaskRecord::stored(new, Timestamp::EPOCH) }
    }

    /// The end in a word: a class, or one of the words of the table.
    fn word(outcome: Outcome, stop: Option<Stop>) -> &'static str {
        match of(outcome, stop, &task()) {
            None => "none",
            Some(End::Done { .. }) => "done",
            Some(End::Released) => "released",
            Some(End::Failed { class, .. }) => class.as_str(),
        }
    }

    fn error(class: Class) -> Outcome {
        Outcome::Returned(Err(TaskError::new(class, "no").into()))
    }

    #[test]
    fn every_cell_of_the_table_holds() {
        let ok = || Outcome::Returned(Ok(Output::default()));
        let panic = || Outcome::Panicked("boom".into());
        let rows = [
            (None, ["done", "transient", "permanent", "panicked", "released"]),
            (Some(Stop::TimedOut), ["done", "timed_out", "permanent", "panicked", "timed_out"]),
            (Some(Stop::Cancelled), ["done", "cancelled", "cancelled", "cancelled", "cancelled"]),
            (Some(Stop::Stopping), ["done", "released", "permanent", "released", "released"]),
            (Some(Stop::Lost), ["none", "none", "none", "none", "none"]),
        ];
        for (stop, expected) in rows {
            let (transient, permanent) = (error(Class::Transient), error(Class::Permanent));
            let found =
                [ok(), transient, permanent, panic(), Outcome::Dropped].map(|outcome| word(outcome, stop));
            assert_eq!(found, expected, "{stop:?}");
        }
    }

    #[test]
    fn what_cannot_be_dropped_is_timed_out_unless_it_was_cancelled() {
        assert_eq!(word(Outcome::GivenUp, Some(Stop::TimedOut)), "timed_out");
        assert_eq!(word(Outcome::GivenUp, Some(Stop::Cancelled)), "cancelled");
    }

    #[test]
    fn the_delay_that_an_error_asks_for_is_kept() {
        let asked = TaskError::rate_limited(Duration::from_secs(9), "slow down");
        let Some(End::Failed { class, after, error }) =
            of(Outcome::Returned(Err(asked.into())), None, &task())
        else {
            panic!("an error is a failure")
        };
        assert_eq!((class, after), (Class::RateLimited, Some(Duration::from_secs(9))));
        assert_eq!(error, "slow down");
    }

    #[test]
    fn a_panic_keeps_its_words() {
        let caught = std::panic::catch_unwind(|| panic!("page {}", 7)).unwrap_err();
        assert!(matches!(Outcome::panicked(&*caught), Outcome::Panicked(words) if words == "page 7"));
    }
}
