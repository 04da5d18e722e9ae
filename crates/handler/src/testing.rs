//! Attempts made by hand: to run a handler or a layer in a test, with no worker and no store.
//!
//! ```
//! use poolwright_core::BoxError;
//! use poolwright_handler::{Context, State, TaskCall, TaskType, service, testing};
//! use serde::{Deserialize, Serialize};
//! use tower::ServiceExt;
//!
//! #[derive(Serialize, Deserialize)]
//! struct Greet { name: String }
//! impl TaskType for Greet { const NAME: &'static str = "greet"; }
//!
//! async fn greet(task: Greet, State(word): State<String>) -> Result<String, BoxError> {
//!     Ok(format!("{word}, {}", task.name))
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let task = testing::task(&Greet { name: "Ada".into() })?;
//! let cx = Context::builder(task).state("hello".to_owned()).build();
//! let output = service(greet).oneshot(TaskCall::new(cx)).await?;
//! assert_eq!(output.result.as_deref(), Some(&b"\"hello, Ada\""[..]));
//! # Ok::<(), BoxError>(()) })?;
//! # Ok::<(), BoxError>(())
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use poolwright_core::clock::ManualClock;
use poolwright_core::{
    BoxError, BoxFuture, Clock, NewTask, Policy, PoolName, QueueName, State, TaskId, TaskRecord, Timestamp,
    Token, TypeName,
};
use tokio_util::sync::CancellationToken;

use crate::{Common, Context, NoReport, Parts, Payload, Report, States};

/// A payload as the task of a first attempt: queue `test`, id `test`, else as [`NewTask::new`] says, claimed at the
/// epoch.
///
/// # Errors
/// When the payload does not encode, or its type's name is no name.
pub fn task(payload: &impl Payload) -> Result<TaskRecord, BoxError> {
    let (queue, id) = (QueueName::new("test")?, TaskId::new("test")?);
    let task = NewTask::new(queue, id, TypeName::new(payload.name())?, payload.to_bytes()?);
    Ok(claimed(task, Timestamp::EPOCH))
}

/// The record that a worker gets which claims this task at `now`, for the first time and as soon as it was enqueued.
#[must_use]
pub fn claimed(task: NewTask, now: Timestamp) -> TaskRecord {
    TaskRecord {
        state: State::Active,
        pending_since: None,
        due: None,
        started_at: Some(now),
        token: Some(Token::from_bytes(*b"made for a test.")),
        ..TaskRecord::stored(task, now)
    }
}

impl Context {
    /// A context made by hand, for a test. What is not stated is as [`ContextBuilder`] says.
    #[must_use]
    pub fn builder(task: TaskRecord) -> ContextBuilder {
        let start = task.started_at.unwrap_or(task.enqueued_at);
        let by_timeout = (!task.timeout.is_zero()).then(|| start + task.timeout);
        let runs_until = [by_timeout, task.deadline].into_iter().flatten().min();
        let parts = Parts {
            task,
            pool: PoolName::new("test").expect("the word is a name"),
            policy: Arc::default(),
            runs_until,
            roll: 0.5,
            common: Arc::new(Common {
                states: Arc::default(),
                report: Arc::new(NoReport),
                clock: Arc::new(ManualClock::at(start)),
                stop: CancellationToken::new(),
            }),
        };
        ContextBuilder { parts, states: States::default() }
    }
}

/// Makes a [`Context`] for a test; see [`Context::builder`].
///
/// Defaults: pool `test`, the policy of [`Policy::default`], a cancel token that nobody fires, the task's own timeout and
/// deadline, a roll of 0.5, no states, reports that go nowhere, and a clock that stands at the start of the attempt.
pub struct ContextBuilder {
    parts: Parts,
    states: States,
}

impl ContextBuilder {
    /// Who runs it.
    #[must_use]
    pub fn pool(mut self, pool: PoolName) -> Self {
        self.parts.pool = pool;
        self
    }

    /// The rules of its type.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.parts.policy = Arc::new(policy);
        self
    }

    /// A token that asks it to end; keep a clone to fire it. The attempt's own is a child of it, as it is in a worker.
    #[must_use]
    pub fn cancel_token(mut self, token: CancellationToken) -> Self {
        self.common().stop = token;
        self
    }

    /// Until when it may run; none: no limit.
    #[must_use]
    pub fn runs_until(mut self, until: Option<Timestamp>) -> Self {
        self.parts.runs_until = until;
        self
    }

    /// The chance drawn for it, 0.0 .. 1.0.
    #[must_use]
    pub fn roll(mut self, roll: f64) -> Self {
        self.parts.roll = roll;
        self
    }

    /// All states at once; [`ContextBuilder::state`] before this is forgotten.
    #[must_use]
    pub fn states(mut self, states: States) -> Self {
        self.states = states;
        self
    }

    /// One more state.
    #[must_use]
    pub fn state<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.states.insert(value);
        self
    }

    /// Where progress and results go, such as a [`Recorder`].
    #[must_use]
    pub fn report(mut self, report: impl Report + 'static) -> Self {
        self.common().report = Arc::new(report);
        self
    }

    /// The time.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.common().clock = Arc::new(clock);
        self
    }

    /// The context.
    #[must_use]
    pub fn build(mut self) -> Context {
        self.common().states = Arc::new(std::mem::take(&mut self.states));
        Context::new(self.parts)
    }

    fn common(&mut self) -> &mut Common {
        Arc::make_mut(&mut self.parts.common)
    }
}

/// A report that keeps what it is told. Cloning shares it, so that a test keeps one hand on it.
#[derive(Debug, Clone, Default)]
pub struct Recorder(Arc<Mutex<Told>>);

#[derive(Debug, Default)]
struct Told {
    progress: Vec<(f64, String)>,
    result: Option<Bytes>,
}

impl Recorder {
    /// Every progress that was told, oldest first.
    #[must_use]
    pub fn progress(&self) -> Vec<(f64, String)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).progress.clone()
    }

    /// The last result that was stored while it ran.
    #[must_use]
    pub fn result(&self) -> Option<Bytes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).result.clone()
    }
}

impl Report for Recorder {
    fn progress<'a>(
        &'a self,
        _: &'a TaskRecord,
        done: f64,
        note: &'a str,
    ) -> BoxFuture<'a, Result<(), BoxError>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).progress.push((done, note.to_owned()));
        Box::pin(async { Ok(()) })
    }

    fn store_result<'a>(&'a self, _: &'a TaskRecord, result: Bytes) -> BoxFuture<'a, Result<(), BoxError>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).result = Some(result);
        Box::pin(async { Ok(()) })
    }
}
