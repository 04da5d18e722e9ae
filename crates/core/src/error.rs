//! What a handler's error says should happen next.
//!
//! A handler may return any error. One that carries a [`TaskError`] anywhere in its chain of sources has the
//! class of that one; any other is transient.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::Class;

/// Any error: what handlers return and layers pass on.
pub type BoxError = Box<dyn Error + Send + Sync + 'static>;

/// An error with a class: it says what should happen next.
///
/// ```
/// use poolwright_core::{BoxError, Class, Next, TaskError};
///
/// fn parse(text: &str) -> Result<u32, BoxError> {
///     Ok(text.parse().map_err(TaskError::permanent)?) // retrying will not make it a number
/// }
/// assert_eq!(Next::of(&*parse("x").unwrap_err()).class, Class::Permanent);
/// ```
#[derive(Debug)]
pub struct TaskError {
    message: Option<String>,
    mark: Mark,
}

/// What an error asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Next {
    /// The kind of trouble.
    pub class: Class,
    /// The delay that the error itself asks for; none leaves it to the policy.
    pub after: Option<Duration>,
}

impl Next {
    /// Reads what an error asks for out of its chain of sources; transient when it does not say.
    #[must_use]
    pub fn of(error: &(dyn Error + 'static)) -> Self {
        chain(error)
            .find_map(|e| match e.downcast_ref::<TaskError>() {
                Some(found) => Some(found.mark.next),
                None => e.downcast_ref::<Mark>().map(|mark| mark.next),
            })
            .unwrap_or(Self { class: Class::Transient, after: None })
    }
}

/// The class, as a link of its own in the chain of sources.
///
/// `anyhow` hides the outermost error from downcasts but hands out its sources; this link is still found then.
/// It prints nothing of its own, and [`describe`] passes over it.
#[derive(Debug)]
struct Mark {
    next: Next,
    source: Option<BoxError>,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.next.class.fmt(f)
    }
}

impl Error for Mark {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|e| e as _)
    }
}

impl TaskError {
    fn wrap(class: Class, after: Option<Duration>, source: BoxError) -> Self {
        Self { message: None, mark: Mark { next: Next { class, after }, source: Some(source) } }
    }

    /// An error of the runtime itself, by class and text.
    #[must_use]
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), mark: Mark { next: Next { class, after: None }, source: None } }
    }

    /// The same error with what led to it, which [`describe`] tells after the message. A class in there does not count.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<BoxError>) -> Self {
        self.mark.source = Some(source.into());
        self
    }

    /// May work next time: retried by the type's policy, uses an attempt.
    pub fn transient(source: impl Into<BoxError>) -> Self {
        Self::wrap(Class::Transient, None, source.into())
    }

    /// Will never work: archived and written as a dead letter now, whatever attempts are left.
    pub fn permanent(source: impl Into<BoxError>) -> Self {
        Self::wrap(Class::Permanent, None, source.into())
    }

    /// The other side asked to wait. Uses no attempt, up to the type's `max_deferrals` in a row.
    ///
    /// Without `retry_after` the policy of class `rate_limited` decides.
    pub fn rate_limited(retry_after: impl Into<Option<Duration>>, source: impl Into<BoxError>) -> Self {
        Self::wrap(Class::RateLimited, retry_after.into(), source.into())
    }

    /// Somebody else holds what this needs. Uses no attempt, up to the type's `max_deferrals` in a row.
    pub fn lock_conflict(source: impl Into<BoxError>) -> Self {
        Self::wrap(Class::LockConflict, None, source.into())
    }

    /// Call me again later. Uses no attempt, up to the type's `max_deferrals` in a row.
    #[must_use]
    pub fn snooze(after: Duration) -> Self {
        let mut error = Self::new(Class::Snoozed, format!("snoozed for {after:?}"));
        error.mark.next.after = Some(after);
        error
    }

    /// No longer wanted: the task is gone, with no dead letter.
    #[must_use]
    pub fn revoked(reason: impl Into<String>) -> Self {
        Self::new(Class::Revoked, reason)
    }

    /// A person must act first (a key expired, a disk is full): the task goes back and its queue is paused
    /// with this reason, in one step.
    #[must_use]
    pub fn needs_operator(reason: impl Into<String>) -> Self {
        Self::new(Class::NeedsOperator, reason)
    }

    /// The class.
    #[must_use]
    pub fn class(&self) -> Class {
        self.mark.next.class
    }

    /// The delay it asks for.
    #[must_use]
    pub fn after(&self) -> Option<Duration> {
        self.mark.next.after
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.message, &self.mark.source) {
            (Some(message), _) => f.write_str(message),
            (None, Some(source)) => source.fmt(f),
            (None, None) => self.mark.fmt(f),
        }
    }
}

impl Error for TaskError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.mark)
    }
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    // A chain that bites its own tail would be a bug of another crate; do not hang on it.
    std::iter::successors(Some(error), |e: &&'a (dyn Error + 'static)| (*e).source()).take(64)
}

/// The text of an error and of what caused it: `outer: cause: cause`.
///
/// A cause that the text before it already ends with is not said twice.
#[must_use]
pub fn describe(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    for link in chain(error).filter(|e| !e.is::<Mark>()) {
        let part = link.to_string();
        if part.is_empty() || text.ends_with(&part) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&part);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("could not store")]
    struct Outer(#[source] TaskError);

    #[test]
    fn an_ordinary_error_is_transient() {
        let error: BoxError = "boom".into();
        assert_eq!(Next::of(&*error), Next { class: Class::Transient, after: None });
    }

    #[test]
    fn a_class_is_found_deep_in_the_chain() {
        let error: BoxError = Box::new(Outer(TaskError::rate_limited(Duration::from_secs(9), "slow down")));
        let next = Next::of(&*error);
        assert_eq!(next, Next { class: Class::RateLimited, after: Some(Duration::from_secs(9)) });
        assert_eq!(describe(&*error), "could not store: slow down");
    }

    /// Behaves as `anyhow` does when it is turned into a boxed error: the outermost type cannot be downcast.
    #[derive(Debug)]
    struct Opaque(TaskError);
    impl fmt::Display for Opaque {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.fmt(f)
        }
    }
    impl Error for Opaque {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.0.source()
        }
    }

    #[test]
    fn a_class_is_found_behind_an_opaque_wrapper() {
        let error = Opaque(TaskError::permanent("no such page"));
        assert_eq!(Next::of(&error).class, Class::Permanent);
        assert_eq!(describe(&error), "no such page");
    }

    #[test]
    fn a_cause_is_told_but_the_outer_class_counts() {
        let error =
            TaskError::new(Class::TimedOut, "too slow").caused_by(TaskError::permanent("no such page"));
        assert_eq!(error.to_string(), "too slow");
        assert_eq!(describe(&error), "too slow: no such page");
        assert_eq!(Next::of(&error).class, Class::TimedOut);
    }

    #[test]
    fn a_snooze_carries_its_delay() {
        let error = TaskError::snooze(Duration::from_secs(30));
        assert_eq!((error.class(), error.after()), (Class::Snoozed, Some(Duration::from_secs(30))));
        assert_eq!(TaskError::new(Class::TimedOut, "too slow").to_string(), "too slow");
    }
}
