//! A directory with a file of queues and a store in it, and who works on them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use poolwright::Stores;
use poolwright::client::Request;
use poolwright::inspector::QueueView;
use poolwright::prelude::*;
use poolwright_testbed::RedisServer;
use tempfile::TempDir;

use crate::stage::{Part, Stage, act};

/// Tasks that travel to the store together.
const BATCH: usize = 500;

/// Where a story happens. Removed with all that is in it at the end.
pub struct Place {
    dir: TempDir,
    topology: Topology,
    store: Store,
}

/// Where the tasks of a place are.
enum Store {
    File,
    /// A server of the place's own.
    Redis(Box<RedisServer>),
    /// Servers that the story holds.
    Elsewhere(String),
}

impl Place {
    /// A place with this file of queues and a store on a file; the queues' version is written for it.
    ///
    /// # Panics
    /// When the file has a mistake.
    #[must_use]
    pub fn new(queues: &str) -> Self {
        Self::with(queues, Store::File)
    }

    /// The same with a store on a Redis server of its own.
    ///
    /// # Panics
    /// When the file has a mistake, or there is no server.
    #[must_use]
    pub fn on_redis(queues: &str) -> Self {
        Self::with(queues, Store::Redis(Box::new(redis_server())))
    }

    /// The same with a store that is elsewhere, by its URL; it keeps tasks alone.
    ///
    /// # Panics
    /// When the file has a mistake.
    #[must_use]
    pub fn reaching(queues: &str, url: String) -> Self {
        Self::with(queues, Store::Elsewhere(url))
    }

    fn with(queues: &str, store: Store) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("queues.toml");
        std::fs::write(&config, format!("version = 1\n{queues}")).unwrap();
        let (topology, warnings) = Topology::load(&config).unwrap_or_else(|error| panic!("{error}"));
        assert!(warnings.is_empty(), "{warnings:?}");
        Self { dir, topology, store }
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The file of queues.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.path().join("queues.toml")
    }

    /// The pools, queues and types of the file.
    #[must_use]
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The SQLite file.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.path().join("tasks.db")
    }

    /// The server, where the place has one of its own.
    #[must_use]
    pub const fn server(&self) -> Option<&RedisServer> {
        match &self.store {
            Store::Redis(server) => Some(server),
            Store::File | Store::Elsewhere(_) => None,
        }
    }

    /// The URL of the tasks. No story cuts the power, so none waits for the disk.
    #[must_use]
    pub fn url(&self) -> String {
        match &self.store {
            Store::File => self.file(),
            Store::Redis(server) => server.unix_url(),
            Store::Elsewhere(url) => url.clone(),
        }
    }

    /// The URL of the ledger, where it is not beside the tasks.
    #[must_use]
    pub fn ledger(&self) -> Option<String> {
        (!matches!(self.store, Store::File)).then(|| self.file())
    }

    fn file(&self) -> String {
        format!("sqlite://{}?synchronous=normal", self.database().display())
    }

    /// An orchestrator of the file on the store.
    pub fn orchestrator(&self) -> Orchestrator {
        let orchestrator = Orchestrator::load(self.config()).unwrap().broker(self.url());
        match self.ledger() {
            Some(ledger) => orchestrator.ledger(ledger),
            None => orchestrator,
        }
    }

    /// The same, playing the tasks of these types on a stage.
    pub fn playing(&self, stage: &Arc<Stage>, types: &[&str]) -> Orchestrator {
        let orchestrator = self.orchestrator().state(Arc::clone(stage));
        types.iter().fold(orchestrator, |orchestrator, name| orchestrator.handle_as(name, act))
    }

    /// The store, opened once more.
    pub async fn stores(&self) -> Stores {
        Stores::open(&self.url(), self.ledger().as_deref()).await.unwrap()
    }

    /// A client of another program.
    pub async fn client(&self) -> Client {
        Client::connect(&self.url(), &self.topology).await.unwrap()
    }

    /// An operator of another program.
    pub async fn inspector(&self) -> TaskInspector {
        TaskInspector::connect(&self.url(), &self.topology).await.unwrap()
    }
}

/// A Redis server of one's own. It writes down every command before it answers, so that a kill loses nothing.
///
/// # Panics
/// When there is no server.
#[must_use]
pub fn redis_server() -> RedisServer {
    // On a thread of its own: a story may have begun a runtime already.
    let start = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let options = RedisServer::options().append_only().line("appendfsync no");
        runtime.block_on(options.start()).unwrap_or_else(|error| panic!("{error}"))
    };
    std::thread::spawn(start).join().unwrap()
}

/// A request for a task of this type that plays this part.
pub fn play<'c>(client: &'c Client, task_type: &str, id: &str, part: Part) -> Request<'c> {
    client.raw(task_type, part.bytes()).id(id)
}

/// Enqueues one task.
pub async fn send(client: &Client, task_type: &str, id: &str, part: Part) {
    play(client, task_type, id, part).send().await.unwrap();
}

/// Enqueues many tasks, `prefix0`, `prefix1`, …; each plays the part of its number.
pub async fn send_many(
    client: &Client,
    task_type: &str,
    prefix: &str,
    count: usize,
    part: impl Fn(usize) -> Part,
) {
    for first in (0..count).step_by(BATCH) {
        let mut batch = client.batch();
        for at in first..count.min(first + BATCH) {
            batch.push(play(client, task_type, &format!("{prefix}{at}"), part(at)));
        }
        batch.send().await.into_iter().for_each(|outcome| drop(outcome.unwrap()));
    }
}

/// Tasks of a queue by state, and what it has counted: pending, active, waiting for a time, archived, completed; processed
/// and failed attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sums {
    /// Waiting for a worker.
    pub pending: u64,
    /// Running.
    pub active: u64,
    /// Waiting for their time.
    pub later: u64,
    /// Failed for good.
    pub archived: u64,
    /// Succeeded and kept.
    pub completed: u64,
    /// Attempts that ended, ever.
    pub processed: u64,
    /// Of these, failed.
    pub failed: u64,
}

impl From<QueueView> for Sums {
    fn from(queue: QueueView) -> Self {
        assert_eq!(queue.quarantined, 0, "nothing in a story is beyond reading");
        Self {
            pending: queue.pending,
            active: queue.active,
            later: queue.scheduled + queue.retry,
            archived: queue.archived,
            completed: queue.completed,
            processed: queue.processed_total,
            failed: queue.failed_total,
        }
    }
}

/// A queue in numbers.
pub async fn sums(inspector: &TaskInspector, queue: &str) -> Sums {
    inspector.queue(queue).await.unwrap().into()
}
