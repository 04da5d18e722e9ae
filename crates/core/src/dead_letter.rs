//! The record of a task that ended badly, and where it is put.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{
    BoxError, BoxFuture, Class, Headers, Scope, Subject, TaskKey, TaskRecord, Tenant, Timestamp, Token,
    TypeName,
};

/// A dead letter: everything needed to understand a failure and to run the task again.
///
/// Its key is the task and the token of the attempt that ended it, so that writing it twice changes nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// Which task.
    pub task: TaskKey,
    /// Which attempt of it; none when it never ran (an operator archived it while it waited).
    pub token: Option<Token>,
    /// What it was.
    pub task_type: TypeName,
    /// Its payload, verbatim.
    pub payload: Bytes,
    /// Its headers.
    pub headers: Headers,
    /// The kind of trouble.
    pub class: Class,
    /// What was said: at most [`crate::text::ERROR_BYTES_MAX`] bytes, cut on a character boundary.
    pub error: Arc<str>,
    /// Attempts made: those that failed, those whose worker died, and the one that ended it. Those that were put off
    /// (rate limits, lock conflicts, snoozes) are not counted.
    pub attempts: u32,
    /// When it ended.
    pub failed_at: Timestamp,
    /// What it worked for.
    pub subjects: Vec<Subject>,
    /// What it belonged to, largest first.
    pub scopes: Vec<Scope>,
    /// Whom it was done for.
    pub tenant: Option<Tenant>,
}

impl DeadLetter {
    /// The record of this task's end.
    #[must_use]
    pub fn of(task: &TaskRecord, class: Class, error: &str, failed_at: Timestamp) -> Self {
        Self {
            task: task.key.clone(),
            token: task.token,
            task_type: task.task_type.clone(),
            payload: task.payload.clone(),
            headers: task.headers.clone(),
            class,
            error: crate::text::error_text(error).into(),
            attempts: attempts(task, class),
            failed_at,
            subjects: task.subjects.clone(),
            scopes: task.scopes.clone(),
            tenant: task.tenant.clone(),
        }
    }

    /// What the failure touches at the widest: its first scope, else its first subject, else its tenant,
    /// else `("unknown", "")`.
    #[must_use]
    pub fn reach(&self) -> (&str, &str) {
        if let Some(scope) = self.scopes.first() {
            return (&scope.kind, &scope.id);
        }
        if let Some(subject) = self.subjects.first() {
            return (&subject.kind, &subject.id);
        }
        match &self.tenant {
            Some(tenant) => ("tenant", &tenant.0),
            None => ("unknown", ""),
        }
    }
}

/// An operator ends a task that waits, which is no attempt; everything else ends one.
fn attempts(task: &TaskRecord, class: Class) -> u32 {
    let last = u32::from(task.token.is_some() && class != Class::Operator);
    task.retried.saturating_add(task.crashes).saturating_add(last)
}

/// Where dead letters go. The ledger is one; an application may have its own.
pub trait DeadLetterSink: Send + Sync {
    /// Stores them durably. The same letter may come again (its key is task and token): that is a success.
    ///
    /// # Errors
    /// Any: the letters stay marked as unrecorded in the store, and upkeep brings them again.
    fn record<'a>(&'a self, letters: &'a [DeadLetter]) -> BoxFuture<'a, Result<(), BoxError>>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NewTask, QueueName, State, TaskId};

    fn task(retried: u32, crashes: u32, token: Option<[u8; 16]>) -> TaskRecord {
        let (queue, id) = (QueueName::new("q").unwrap(), TaskId::new("a").unwrap());
        let new = NewTask { max_retry: 3, ..NewTask::new(queue, id, TypeName::new("x:y").unwrap(), "") };
        TaskRecord {
            state: State::Archived,
            retried,
            crashes,
            token: token.map(Token::from_bytes),
            ..TaskRecord::stored(new, Timestamp::EPOCH)
        }
    }

    #[test]
    fn attempts_are_those_that_failed_or_crashed_and_the_last_one() {
        let attempts = |task: &TaskRecord, class| DeadLetter::of(task, class, "", Timestamp::EPOCH).attempts;
        let token = Some([1; 16]);
        assert_eq!(attempts(&task(3, 0, token), Class::Transient), 4);
        assert_eq!(attempts(&task(0, 2, token), Class::Crashed), 3);
        assert_eq!(attempts(&task(1, 1, token), Class::Permanent), 3);
    }

    #[test]
    fn an_operator_who_archives_what_waits_makes_no_attempt() {
        let attempts =
            |task: &TaskRecord| DeadLetter::of(task, Class::Operator, "", Timestamp::EPOCH).attempts;
        // A store gives the archive by hand a token of its own.
        assert_eq!(attempts(&task(0, 0, Some([1; 16]))), 0);
        assert_eq!(attempts(&task(2, 0, None)), 2);
    }
}
