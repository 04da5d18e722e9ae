//! An orchestrator in memory, whose clock and progress are in the hands of a test.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use poolwright_broker::{Enqueued, How};
use poolwright_client::{Client, Witness};
use poolwright_core::clock::ManualClock;
use poolwright_core::{Chance, Clock, DeadLetter, NewTask, QueueName, Timestamp};
use poolwright_handler::Payload;
use poolwright_inspector::{Letters, TaskInspector};
use poolwright_ledger::ListRequest;
use poolwright_registry::Topology;

use super::drain::{Drained, Hands};
use crate::assembly::Assembly;
use crate::stores::Stores;
use crate::{Error, Orchestrator};

/// When the clock of a [`TestQueue`] begins: 2030-01-01T00:00:00Z.
pub const START: Timestamp = Timestamp::from_secs(1_893_456_000);

/// The seed of a [`TestQueue`]'s chance, so that a test runs the same twice.
const SEED: u64 = 1;

/// How many due tasks one step promotes.
const PROMOTE_STEP: u32 = 1_000;

/// An orchestrator in memory that runs tasks when a test says so, and whose clock stands still until a test moves it.
///
/// It takes the orchestrator that the program itself starts, with its handlers, layers, states and file; only store,
/// clock and chance are the kit's. Tasks run one after another on the test's own runtime, through the same layers,
/// judged by the same rules.
///
/// Its clock stands still while a handler runs. A handler that sleeps, hangs or uses up its timeout does so on tokio's
/// clock, and on a runtime whose time is paused it takes no time at all: `#[tokio::test(start_paused = true)]`.
///
/// ```
/// use poolwright::prelude::*;
/// use poolwright::testing::TestQueue;
///
/// #[derive(Serialize, Deserialize, TaskType)]
/// #[task("user:welcome")]
/// struct Welcome { user: String }
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize, TaskType)]
/// #[task("mail:send")]
/// struct SendMail { to: String }
///
/// async fn welcome(task: Welcome, client: Client) -> Result<(), BoxError> {
///     client.task(&SendMail { to: task.user }).delay(Duration::from_secs(90)).send().await?;
///     Ok(())
/// }
///
/// async fn send_mail(mail: SendMail) -> Result<(), BoxError> {
///     Err(TaskError::permanent(format!("no such mailbox: {}", mail.to)).into())
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let topology = Topology::simple([("mail", 4)]).task("user:welcome", "mail").task("mail:send", "mail").build()?;
/// let queue = TestQueue::new(Orchestrator::new(topology).handle(welcome).handle(send_mail)).await?;
///
/// queue.client().enqueue(&Welcome { user: "ada".into() }).await?;
/// queue.drain().await.assert_clean();
/// assert_eq!(queue.enqueued::<SendMail>(), [SendMail { to: "ada".into() }]);
///
/// queue.advance(Duration::from_secs(90)).await;
/// assert_eq!(queue.drain().await.archived, 1);
/// assert_eq!(&*queue.dead_letters().await[0].error, "no such mailbox: ada");
/// # Ok::<(), BoxError>(()) })?;
/// # Ok::<(), BoxError>(())
/// ```
pub struct TestQueue {
    hands: Hands,
    client: Client,
    inspector: TaskInspector,
    stores: Stores,
    clock: ManualClock,
    queues: Vec<QueueName>,
    seen: Arc<Mutex<Vec<NewTask>>>,
}

impl TestQueue {
    /// Puts an orchestrator on a store in memory. Its own store, clock and chance are set aside; its pools are all
    /// those it names.
    ///
    /// # Errors
    /// [`Error::Refused`] with everything that is wrong, as a start would say.
    pub async fn new(orchestrator: Orchestrator) -> Result<Self, Error> {
        let (clock, chance) = (ManualClock::at(START), Chance::seeded(SEED));
        let shared: Arc<dyn Clock> = Arc::new(clock.clone());
        let stores = Stores::memory(shared.clone(), chance.clone());
        let seen: Arc<Mutex<Vec<NewTask>>> = Arc::default();
        let orchestrator = orchestrator.clock(shared).chance(chance).witness(witness(seen.clone()));
        let assembly: Assembly = orchestrator.assemble(stores).await?;
        Ok(Self {
            client: assembly.client.clone(),
            inspector: assembly.inspector.clone(),
            stores: assembly.stores.clone(),
            queues: assembly.topology.queues().iter().map(|queue| queue.stored.clone()).collect(),
            hands: Hands::new(assembly),
            clock,
            seen,
        })
    }

    /// A client of its store.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// An inspector of its store.
    #[must_use]
    pub fn inspector(&self) -> TaskInspector {
        self.inspector.clone()
    }

    /// The dead letters as an operator has them: to replay one, say.
    #[must_use]
    pub fn letters(&self) -> Letters {
        self.inspector.dead_letters(self.stores.ledger.clone())
    }

    /// Its pools, queues and types.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        self.inspector.topology()
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Runs tasks, one after another, until none is pending; those that they enqueue as well. Tasks that are not due
    /// and those of paused queues stay. The pools take turns, and draw their queues by weight.
    ///
    /// # Panics
    /// After 100,000 attempts: some task enqueues itself for ever.
    pub async fn drain(&self) -> Drained {
        self.hands.drain().await
    }

    /// Drains, and moves the clock to the next due time, again and again, until nothing waits: all retries are used up.
    ///
    /// # Panics
    /// After 100,000 attempts: some task waits for ever, as one without a handler does.
    pub async fn exhaust(&self) -> Drained {
        let mut total = Drained::default();
        loop {
            self.hands.drain_into(&mut total).await;
            if !self.skip_to_due().await {
                return total;
            }
        }
    }

    /// Moves the clock forward; what has become due is pending afterwards, and does not run before the next
    /// [`drain`](Self::drain).
    pub async fn advance(&self, by: Duration) {
        self.clock.advance(by);
        self.promote().await;
    }

    /// Moves the clock to the next due time; false when nothing waits for one.
    pub async fn skip_to_due(&self) -> bool {
        match self.promote().await {
            Some(due) => {
                self.advance(due.after(self.clock.now())).await;
                true
            }
            None => false,
        }
    }

    /// Every task of this payload that was enqueued, by test or handlers, oldest first, whether it ran or not. Tasks that
    /// were refused or met one that waits already are not among them.
    ///
    /// # Panics
    /// When one does not decode.
    #[must_use]
    pub fn enqueued<T: Payload>(&self) -> Vec<T> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let ours = seen.iter().filter(|task| T::NAMES.contains(&task.task_type.as_str()));
        let decode = |task: &NewTask| {
            let decoded = T::from_bytes(task.task_type.as_str(), &task.payload);
            decoded.unwrap_or_else(|why| panic!("task {} does not decode: {why}", task.key))
        };
        ours.map(decode).collect()
    }

    /// Every task that was enqueued, with its options, oldest first.
    #[must_use]
    pub fn enqueued_tasks(&self) -> Vec<NewTask> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The dead letters, oldest first.
    ///
    /// # Panics
    /// Never: the ledger in memory always answers.
    pub async fn dead_letters(&self) -> Vec<DeadLetter> {
        let mut letters = Vec::new();
        let mut before = None;
        loop {
            let request = ListRequest { before, limit: 200, ..ListRequest::default() };
            let page = self.stores.ledger.list(request).await.expect("the ledger in memory always answers");
            letters.extend(page.letters.into_iter().map(|stored| stored.letter));
            before = page.next;
            if before.is_none() {
                letters.reverse();
                return letters;
            }
        }
    }

    /// Makes due tasks pending, and says when the next one is due.
    async fn promote(&self) -> Option<Timestamp> {
        loop {
            let promoted = self.stores.broker.promote_due(self.queues.clone(), PROMOTE_STEP).await;
            let promoted = promoted.expect("the store in memory answers until it is closed");
            if promoted.tasks == 0 {
                return promoted.next_due;
            }
        }
    }
}

/// Notes what the store took as a task of its own.
fn witness(seen: Arc<Mutex<Vec<NewTask>>>) -> Witness {
    Arc::new(move |task: &NewTask, done: &Enqueued| {
        if done.how != How::Coalesced {
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(task.clone());
        }
    })
}

impl fmt::Debug for TestQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestQueue").field("now", &self.clock.now()).finish_non_exhaustive()
    }
}
