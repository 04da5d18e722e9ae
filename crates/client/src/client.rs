//! The public entry: what an application holds to submit tasks.
//!
//! Invariant: a task that the file does not allow never leaves this crate.

use std::fmt;
use std::iter::{Peekable, repeat_n};
use std::sync::Arc;

use bytes::Bytes;
use poolwright_broker::{Broker, Enqueued, Error as StoreError};
use poolwright_core::{BoxError, Chance, Headers, NewTask};
use poolwright_handler::{Context, FromCall, Need, Payload};
use poolwright_registry::Topology;
use tracing::Instrument;

use crate::{Batch, Error, Request};

/// A store takes so many tasks in one step; a batch that is longer goes in parts. All that a store does waits for a
/// step, and so do the leases of running tasks: with a hundred thousand tasks in one, workers would lose theirs.
const PART_TASKS_MAX: usize = 1_000;

/// A part is full as well when its payloads come to so many bytes.
const PART_BYTES_MAX: usize = 4 << 20;

/// Writes the trace context of the calling code into a task's headers.
///
/// Called once for each task, inside the span of the enqueue.
pub type Inject = Arc<dyn Fn(&mut Headers) + Send + Sync>;

/// Is told of every task that the store took, as it was sent and what became of it: for tests and counters.
pub type Witness = Arc<dyn Fn(&NewTask, &Enqueued) + Send + Sync>;

/// Submits tasks. Cloning is cheap and shares everything; a handler gets one by taking a `Client` argument.
///
/// ```no_run
/// # use std::time::Duration;
/// # use poolwright_client::{Client, Error};
/// # use poolwright_handler::TaskType;
/// # #[derive(serde::Serialize, serde::Deserialize)]
/// # struct Resize { path: String }
/// # impl TaskType for Resize { const NAME: &'static str = "image:resize"; }
/// # async fn f(client: Client, resize: Resize) -> Result<(), Error> {
/// client.enqueue(&resize).await?;
/// client.task(&resize).delay(Duration::from_secs(90)).unique_for(Duration::from_secs(3_600)).send().await?;
/// client.raw("image:resize", r#"{"path":"a.png"}"#).header("origin", "import").send().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Client(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    broker: Arc<dyn Broker>,
    topology: Topology,
    chance: Chance,
    inject: Option<Inject>,
    witness: Option<Witness>,
}

impl Client {
    /// A client of this store, for the types and queues of this topology.
    #[must_use]
    pub fn new(broker: Arc<dyn Broker>, topology: Topology) -> Self {
        let chance = Chance::from_entropy();
        Self(Arc::new(Inner { broker, topology, chance, inject: None, witness: None }))
    }

    /// The same client with another source of ids; tests give a seeded one.
    #[must_use]
    pub fn with_chance(self, chance: Chance) -> Self {
        Self(Arc::new(Inner { chance, ..Arc::unwrap_or_clone(self.0) }))
    }

    /// The same client, which lets `inject` write headers into every task it submits.
    #[must_use]
    pub fn with_inject(self, inject: Inject) -> Self {
        Self(Arc::new(Inner { inject: Some(inject), ..Arc::unwrap_or_clone(self.0) }))
    }

    /// The same client, which tells `witness` of every task that the store took.
    #[must_use]
    pub fn with_witness(self, witness: Witness) -> Self {
        Self(Arc::new(Inner { witness: Some(witness), ..Arc::unwrap_or_clone(self.0) }))
    }

    /// Submits a task as its type's rules say.
    ///
    /// It is sent once. When a store cannot be reached or its answer is lost ([`Error::is_retryable`]), nobody here can
    /// tell whether the task is stored, and under a fresh id the same call again may store it twice. Work that must be
    /// neither lost nor doubled has an id that follows from it (given here, or by the type's `id` template), and is
    /// sent again under it until the store answers. That the id is taken then says that an earlier send was heard:
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use poolwright_client::{Client, Error};
    /// # async fn f(client: Client, order: u64) -> Result<(), Error> {
    /// let id = format!("invoice-{order}");
    /// loop {
    ///     let request = client.raw("invoice:send", format!(r#"{{"order":{order}}}"#)).id(&id);
    ///     match request.retention(Duration::from_secs(3_600)).send().await {
    ///         Err(error) if error.is_retryable() => tokio::time::sleep(Duration::from_secs(1)).await,
    ///         Err(error) if error.existing().is_some_and(|key| key.id == id.as_str()) => break,
    ///         outcome => return outcome.map(drop),
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// The retention keeps the id taken after a success; without it, a task that has run to its end between two sends
    /// runs again.
    ///
    /// # Errors
    /// Any of [`Error`]; see [`Error::is_duplicate`] and [`Error::is_retryable`].
    pub async fn enqueue<T: Payload>(&self, task: &T) -> Result<Enqueued, Error> {
        self.task(task).send().await
    }

    /// Begins a request for a typed task, which can say more than its type's rules.
    pub fn task<T: Payload>(&self, task: &T) -> Request<'_> {
        let payload = task
            .to_bytes()
            .map_err(|why| Error::Encode { task_type: task.name().to_owned(), why: why.to_string() });
        Request::new(self, task.name(), payload)
    }

    /// Begins a request for a task by its type's name and its payload's bytes. No bytes: a task without payload.
    pub fn raw(&self, task_type: &str, payload: impl Into<Bytes>) -> Request<'_> {
        Request::new(self, task_type, Ok(payload.into()))
    }

    /// Begins a batch: many requests in few round trips.
    pub fn batch(&self) -> Batch<'_> {
        Batch::new(self)
    }

    /// Submits many tasks of one payload in few round trips, as [`Batch::send`] does; one outcome each, in order.
    pub async fn enqueue_all<'t, T: Payload>(
        &self,
        tasks: impl IntoIterator<Item = &'t T>,
    ) -> Vec<Result<Enqueued, Error>> {
        let mut batch = self.batch();
        batch.extend(tasks.into_iter().map(|task| self.task(task)));
        batch.send().await
    }

    /// The types and queues it submits to.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.0.topology
    }

    /// The store it submits to.
    #[must_use]
    pub fn broker(&self) -> &Arc<dyn Broker> {
        &self.0.broker
    }

    pub(crate) fn chance(&self) -> &Chance {
        &self.0.chance
    }

    /// Sends what the requests of one call came to, and puts each outcome in its place.
    pub(crate) async fn submit(&self, built: Vec<Result<NewTask, Error>>) -> Vec<Result<Enqueued, Error>> {
        let span = tracing::info_span!(
            "poolwright.enqueue",
            otel.kind = "producer",
            tasks = built.len(),
            task_id = tracing::field::Empty,
            task_type = tracing::field::Empty,
            queue = tracing::field::Empty,
        );
        if let [Ok(task)] = built.as_slice() {
            span.record("task_id", task.key.id.as_str());
            span.record("task_type", task.task_type.as_str());
            span.record("queue", task.key.queue.as_str());
        }
        self.store(built).instrument(span).await
    }

    async fn store(&self, built: Vec<Result<NewTask, Error>>) -> Vec<Result<Enqueued, Error>> {
        let (mut outcomes, mut tasks) = (Vec::with_capacity(built.len()), Vec::with_capacity(built.len()));
        for result in built {
            outcomes.push(result.map(|mut task| {
                if let Some(inject) = &self.0.inject {
                    // What the caller wrote by hand wins over what the trace would write.
                    let own = std::mem::take(&mut task.headers);
                    inject(&mut task.headers);
                    task.headers.extend(own);
                }
                tasks.push(task);
            }));
        }
        let mut stored = self.send(tasks).await.into_iter();
        let mut next = || {
            let outcome = stored.next().expect("a store answers with one outcome for each task");
            outcome.map_err(Error::from)
        };
        outcomes.into_iter().map(|outcome| outcome.and_then(|()| next())).collect()
    }

    /// One outcome each, in order. A part that fails as a whole is the last one: the store is away for the others too.
    async fn send(&self, tasks: Vec<NewTask>) -> Vec<Result<Enqueued, StoreError>> {
        let count = tasks.len();
        let mut outcomes = Vec::with_capacity(count);
        let mut rest = tasks.into_iter().peekable();
        while rest.peek().is_some() {
            match self.send_part(next_part(&mut rest)).await {
                Ok(part) => outcomes.extend(part),
                Err(error) => {
                    outcomes.extend(repeat_n(Err(error), count - outcomes.len()));
                    break;
                }
            }
        }
        outcomes
    }

    async fn send_part(&self, tasks: Vec<NewTask>) -> Result<Vec<Result<Enqueued, StoreError>>, StoreError> {
        let Some(witness) = &self.0.witness else { return self.0.broker.enqueue(tasks).await };
        let outcomes = self.0.broker.enqueue(tasks.clone()).await?;
        for (task, outcome) in tasks.iter().zip(&outcomes) {
            if let Ok(enqueued) = outcome {
                witness(task, enqueued);
            }
        }
        Ok(outcomes)
    }
}

/// What goes to the store next: at least one task.
fn next_part(tasks: &mut Peekable<impl Iterator<Item = NewTask>>) -> Vec<NewTask> {
    let (mut part, mut bytes) = (Vec::new(), 0);
    while let Some(task) = tasks.next_if(|task| {
        part.is_empty() || (part.len() < PART_TASKS_MAX && bytes + task.payload.len() <= PART_BYTES_MAX)
    }) {
        bytes += task.payload.len();
        part.push(task);
    }
    part
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("store", &self.0.broker.describe()).finish_non_exhaustive()
    }
}

/// A handler that enqueues takes the client as an argument.
impl FromCall for Client {
    fn need() -> Option<Need> {
        Some(Need::state::<Self>())
    }

    fn from_call(cx: &Context) -> Result<Self, BoxError> {
        cx.states().get().ok_or_else(|| "no client was given to the worker".into())
    }
}
