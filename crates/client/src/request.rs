//! One task on its way: what the caller says beyond the rules of its type.

use std::time::Duration;

use bytes::Bytes;
use poolwright_broker::Enqueued;
use poolwright_core::{
    Headers, NameError, NewTask, OnConflict, Scope, Subject, TaskId, Tenant, Timestamp, When,
};

use crate::{Client, Error, typed};

/// A task that is being described. Every option overrides the rule of its type; what is not said follows the file.
///
/// A value that cannot be kept (an empty id, say) is refused by [`Request::send`], so that calls chain.
#[derive(Debug, Clone)]
#[must_use = "a request does nothing until it is sent"]
pub struct Request<'c> {
    client: &'c Client,
    task_type: String,
    payload: Result<Bytes, Error>,
    options: Options,
}

/// What was said. `None` leaves it to the rules of the type.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    pub(crate) when: Option<When>,
    pub(crate) id: Option<Result<TaskId, NameError>>,
    pub(crate) unique_for: Option<Duration>,
    pub(crate) unique_key: Option<String>,
    pub(crate) retention: Option<Duration>,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) headers: Headers,
    pub(crate) max_retry: Option<u32>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) queue: Option<String>,
    pub(crate) on_conflict: Option<OnConflict>,
    pub(crate) subjects: Vec<Subject>,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) tenant: Option<Tenant>,
}

impl<'c> Request<'c> {
    pub(crate) fn new(client: &'c Client, task_type: &str, payload: Result<Bytes, Error>) -> Self {
        Self { client, task_type: task_type.to_owned(), payload, options: Options::default() }
    }

    /// Not before so long from now, by the store's clock. Zero: at once, also where the type has a delay.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.options.when = Some(When::After(delay));
        self
    }

    /// Not before this time; a past one means at once. Takes the place of a delay, and the other way round.
    pub fn at(mut self, time: Timestamp) -> Self {
        self.options.when = Some(When::At(time));
        self
    }

    /// Under this id, unique in its queue. Without it: the type's template, or else a fresh time-ordered id.
    pub fn id(mut self, id: impl AsRef<str>) -> Self {
        self.options.id = Some(TaskId::new(id));
        self
    }

    /// What happens when the id is taken.
    pub const fn on_conflict(mut self, rule: OnConflict) -> Self {
        self.options.on_conflict = Some(rule);
        self
    }

    /// Refused while an equal task (same type, same payload bytes) waits or runs in its queue, for at most so long
    /// from its due time on; at least 1 s. Zero: no lock for this task, also where its type asks for one.
    pub const fn unique_for(mut self, lasts: Duration) -> Self {
        self.options.unique_for = Some(lasts);
        self
    }

    /// What makes it equal to another of its type, instead of its payload. Needs a `unique_for`, here or in the file.
    pub fn unique_key(mut self, key: impl Into<String>) -> Self {
        self.options.unique_key = Some(key.into());
        self
    }

    /// Kept so long after success; zero: gone at once.
    pub const fn retention(mut self, keep: Duration) -> Self {
        self.options.retention = Some(keep);
        self
    }

    /// Not tried any more after this time.
    pub const fn deadline(mut self, time: Timestamp) -> Self {
        self.options.deadline = Some(time);
        self
    }

    /// Text beside the payload, which layers and handler read. The same key again replaces it.
    pub fn header(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.headers.insert(key.into(), value.into());
        self
    }

    /// Tried again at most so often after a failure.
    pub const fn max_retry(mut self, retries: u32) -> Self {
        self.options.max_retry = Some(retries);
        self
    }

    /// How long one attempt may take; zero: no limit. Whole seconds on Redis.
    pub const fn timeout(mut self, limit: Duration) -> Self {
        self.options.timeout = Some(limit);
        self
    }

    /// Into this queue of the file instead of its type's, by its name there or by its stored name.
    pub fn queue(mut self, name: impl Into<String>) -> Self {
        self.options.queue = Some(name.into());
        self
    }

    /// Works for this one too, beside what the payload says.
    pub fn subject(mut self, subject: Subject) -> Self {
        self.options.subjects.push(subject);
        self
    }

    /// Belongs to this one too, beside what the payload says.
    pub fn scope(mut self, scope: Scope) -> Self {
        self.options.scopes.push(scope);
        self
    }

    /// Done for this tenant, whatever the payload says.
    pub fn tenant(mut self, tenant: Tenant) -> Self {
        self.options.tenant = Some(tenant);
        self
    }

    /// Submits it.
    ///
    /// # Errors
    /// Any of [`Error`]; nothing was stored, except that [`Error::is_retryable`] ones may have been.
    pub async fn send(self) -> Result<Enqueued, Error> {
        let client = self.client;
        let mut outcomes = client.submit(vec![self.build()]).await;
        outcomes.pop().expect("one request has one outcome")
    }

    /// The task as it would be sent, without sending it: for an enqueue in the caller's own transaction, or to look.
    ///
    /// # Errors
    /// All of [`Error`] but those of the store.
    pub fn build(self) -> Result<NewTask, Error> {
        let (now, chance) = (self.client.broker().now(), self.client.chance());
        typed::build(self.client.topology(), now, chance, &self.task_type, self.payload?, self.options)
    }
}
