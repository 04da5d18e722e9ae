//! What is known about one attempt, shared by layers and handler.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use poolwright_core::{
    BoxError, Class, Clock, DeadLetter, Headers, Policy, PoolName, QueueName, Scope, Subject, TaskError,
    TaskId, TaskRecord, Tenant, Timestamp, TypeName,
};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::{Report, States};

/// What a worker puts into a context: what is the attempt's own, and what it shares with others.
#[derive(Clone)]
pub struct Parts {
    /// The task as claimed.
    pub task: TaskRecord,
    /// Who runs it.
    pub pool: PoolName,
    /// The rules of its type.
    pub policy: Arc<Policy>,
    /// Until when it may run: its timeout and deadline, whichever is first.
    pub runs_until: Option<Timestamp>,
    /// The chance drawn for this attempt, 0.0 .. 1.0: all who ask the judge about it use the same.
    pub roll: f64,
    /// What it has in common with all attempts of its worker.
    pub common: Arc<Common>,
}

/// What all attempts of a worker have in common.
#[derive(Clone)]
pub struct Common {
    /// The application's values.
    pub states: Arc<States>,
    /// The way to the store.
    pub report: Arc<dyn Report>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Fires when all of them should end: the token of each is a child of it.
    pub stop: CancellationToken,
}

/// One attempt: its task, its cancel token, the application's states. Cloning is cheap.
///
/// ```
/// # use poolwright_handler::Context;
/// # use poolwright_core::BoxError;
/// # async fn f(cx: Context) -> Result<(), BoxError> {
/// cx.progress(0.5, "parsed").await; // shown by the inspector
/// cx.checkpoint()?;                 // stops here if cancelled or out of time
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Context(Arc<Inner>);

/// Made for every attempt, so what few of them need takes no room here until it is needed.
struct Inner {
    parts: Parts,
    /// A child of the common one, made when somebody first asks for it: a handler that never waits never does.
    cancel: OnceLock<CancellationToken>,
    why: Mutex<Option<Class>>,
    /// By type; there are few.
    extensions: Mutex<Vec<(TypeId, Box<dyn Any + Send + Sync>)>>,
    dead_letter: Mutex<Option<Box<DeadLetter>>>,
}

impl Context {
    /// A context of these parts.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(Inner {
            parts,
            cancel: OnceLock::new(),
            why: Mutex::default(),
            extensions: Mutex::default(),
            dead_letter: Mutex::default(),
        }))
    }

    /// The task as it was claimed.
    #[must_use]
    pub fn task(&self) -> &TaskRecord {
        &self.0.parts.task
    }

    /// Its id.
    #[must_use]
    pub fn task_id(&self) -> &TaskId {
        &self.task().key.id
    }

    /// Its type.
    #[must_use]
    pub fn task_type(&self) -> &TypeName {
        &self.task().task_type
    }

    /// The stored name of its queue.
    #[must_use]
    pub fn queue(&self) -> &QueueName {
        &self.task().key.queue
    }

    /// The pool that runs it.
    #[must_use]
    pub fn pool(&self) -> &PoolName {
        &self.0.parts.pool
    }

    /// Its bytes.
    #[must_use]
    pub fn payload(&self) -> &Bytes {
        &self.task().payload
    }

    /// Its headers.
    #[must_use]
    pub fn headers(&self) -> &Headers {
        &self.task().headers
    }

    /// What it works for.
    #[must_use]
    pub fn subjects(&self) -> &[Subject] {
        &self.task().subjects
    }

    /// What it belongs to.
    #[must_use]
    pub fn scopes(&self) -> &[Scope] {
        &self.task().scopes
    }

    /// Whom it is done for.
    #[must_use]
    pub fn tenant(&self) -> Option<&Tenant> {
        self.task().tenant.as_ref()
    }

    /// Retries used before this attempt; 0 in the first.
    #[must_use]
    pub fn retried(&self) -> u32 {
        self.task().retried
    }

    /// Retries allowed.
    #[must_use]
    pub fn max_retry(&self) -> u32 {
        self.task().max_retry
    }

    /// An ordinary failure of this attempt would be final.
    #[must_use]
    pub fn is_last_attempt(&self) -> bool {
        self.retried() >= self.max_retry()
    }

    /// The rules of its type, for whoever asks the judge.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.0.parts.policy
    }

    /// The chance drawn for this attempt.
    #[must_use]
    pub fn roll(&self) -> f64 {
        self.0.parts.roll
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.common().clock.now()
    }

    /// Until when it may run; none: no limit.
    #[must_use]
    pub fn runs_until(&self) -> Option<Timestamp> {
        self.0.parts.runs_until
    }

    /// How long it may still run; none: no limit.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        self.runs_until().map(|until| until.after(self.now()))
    }

    /// Code that asks [`crate::background::is_background`] is told so in this attempt's future.
    #[must_use]
    pub fn is_background(&self) -> bool {
        crate::background::is_background()
    }

    /// Spawns work that carries the background mark and may outlive the attempt.
    pub fn spawn<F>(&self, future: F) -> tokio::task::JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        crate::background::spawn(future)
    }

    /// Fires when the attempt should end: cancelled, out of time, its lease lost, or its worker stopping.
    #[must_use]
    pub fn cancel_token(&self) -> &CancellationToken {
        self.0.cancel.get_or_init(|| self.common().stop.child_token())
    }

    /// Waits until the attempt should end.
    pub async fn cancelled(&self) {
        self.cancel_token().cancelled().await;
    }

    /// Asks the attempt to end, and says why. The first reason stays.
    pub fn stop(&self, class: Class) {
        self.0.why.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(class);
        self.cancel_token().cancel();
    }

    /// Why it should end, if it should; `cancelled` when nobody said why.
    #[must_use]
    pub fn stop_reason(&self) -> Option<Class> {
        // While it has no token of its own, only that of all can have fired.
        let is_fired = || self.0.cancel.get().unwrap_or(&self.common().stop).is_cancelled();
        self.given_reason().or_else(|| is_fired().then_some(Class::Cancelled))
    }

    /// The reason that was given with [`Context::stop`]; none when the token was fired without one, as a worker does that
    /// stops and gives its tasks back.
    #[must_use]
    pub fn given_reason(&self) -> Option<Class> {
        *self.0.why.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops here if the attempt should end or its time is over.
    ///
    /// # Errors
    /// An error of class `cancelled` or `timed_out`; return it with `?`.
    pub fn checkpoint(&self) -> Result<(), TaskError> {
        if let Some(class) = self.stop_reason() {
            return Err(TaskError::new(class, format!("stopped at a checkpoint: {class}")));
        }
        match self.runs_until() {
            Some(until) if self.now() >= until => {
                Err(TaskError::new(Class::TimedOut, "stopped at a checkpoint: its time is over"))
            }
            _ => Ok(()),
        }
    }

    /// Tells how far it is, from 0 to 1, with a word. A store that is away is logged, and nothing else.
    pub async fn progress(&self, done: f64, note: impl AsRef<str>) {
        let done = if done.is_nan() { 0.0 } else { done.clamp(0.0, 1.0) };
        if let Err(error) = self.common().report.progress(self.task(), done, note.as_ref()).await {
            tracing::debug!(task_id = %self.task_id(), queue = %self.queue(), %error, "progress was not stored");
        }
    }

    /// Keeps a result with the task now, as JSON; what the handler returns in the end replaces it.
    ///
    /// # Errors
    /// When it does not serialize, or the store refuses it.
    pub async fn store_result(&self, result: &(impl Serialize + Sync)) -> Result<(), BoxError> {
        let json = serde_json::to_vec(result)?;
        self.common().report.store_result(self.task(), json.into()).await
    }

    /// The application's values.
    #[must_use]
    pub fn states(&self) -> &States {
        &self.common().states
    }

    fn common(&self) -> &Common {
        &self.0.parts.common
    }

    /// Leaves a value for inner layers and the handler; one of the same type is replaced.
    pub fn extend<T: Clone + Send + Sync + 'static>(&self, value: T) {
        let (id, value) = (TypeId::of::<T>(), Box::new(value));
        let mut extensions = self.0.extensions.lock().unwrap_or_else(PoisonError::into_inner);
        match extensions.iter_mut().find(|(of, _)| *of == id) {
            Some((_, old)) => *old = value,
            None => extensions.push((id, value)),
        }
    }

    /// A value that an outer layer left.
    #[must_use]
    pub fn extension<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        let extensions = self.0.extensions.lock().unwrap_or_else(PoisonError::into_inner);
        extensions.iter().find_map(|(_, value)| value.downcast_ref::<T>()).cloned()
    }

    /// Leaves the dead letter that is due if the store accepts the end as final.
    pub fn leave_dead_letter(&self, letter: DeadLetter) {
        *self.0.dead_letter.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(letter));
    }

    /// Takes the dead letter that a layer left.
    #[must_use]
    pub fn take_dead_letter(&self) -> Option<DeadLetter> {
        self.0.dead_letter.lock().unwrap_or_else(PoisonError::into_inner).take().map(|letter| *letter)
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("task", &self.task().key)
            .field("task_type", self.task_type())
            .field("pool", self.pool())
            .field("retried", &self.retried())
            .finish_non_exhaustive()
    }
}
