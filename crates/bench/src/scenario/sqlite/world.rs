//! Stores and workers for a scenario: each gets a file of its own, and settings like everybody else's.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use poolwright_broker::{Broker, WeightedQueue};
use poolwright_core::clock::SystemClock;
use poolwright_core::{Chance, Clock, NewTask, PoolName, QueueName, TaskId, TypeName};
use poolwright_handler::{Handler, States};
use poolwright_middleware::Stack;
use poolwright_store_sqlite::{Options, SqliteStore};
use poolwright_worker::{PoolConfig, Router, Rules, Running, Server};
use tempfile::TempDir;

/// The task type of all scenarios.
pub(crate) const TASK: &str = "bench:task";

/// The payload: 100 bytes, no JSON, so that nobody parses it.
pub(crate) const PAYLOAD: [u8; 100] = [b'x'; 100];

/// Where scenarios run.
pub(crate) struct World {
    dir: PathBuf,
    _temporary: Option<TempDir>,
    synchronous: String,
    files: AtomicU64,
    chance: Chance,
}

impl World {
    /// A world in this directory, or in a temporary one.
    pub(crate) fn new(dir: Option<PathBuf>, synchronous: &str) -> Result<Self> {
        let (dir, temporary) = match dir {
            Some(dir) => (dir, None),
            None => {
                let temporary = TempDir::new()?;
                (temporary.path().to_owned(), Some(temporary))
            }
        };
        Ok(Self {
            dir,
            _temporary: temporary,
            synchronous: synchronous.to_owned(),
            files: AtomicU64::new(0),
            chance: Chance::from_entropy(),
        })
    }

    /// The directory.
    pub(crate) fn dir(&self) -> &PathBuf {
        &self.dir
    }

    /// What a commit waits for.
    pub(crate) fn synchronous(&self) -> &str {
        &self.synchronous
    }

    /// A source of chance.
    pub(crate) fn chance(&self) -> &Chance {
        &self.chance
    }

    /// A file that nobody used before.
    pub(crate) fn file(&self, kind: &str) -> PathBuf {
        self.dir.join(format!(
            "{kind}-{}-{}.db",
            std::process::id(),
            self.files.fetch_add(1, Ordering::Relaxed)
        ))
    }

    /// A store on a fresh file.
    pub(crate) fn store(&self) -> Result<Arc<dyn Broker>> {
        self.open(&self.file("store"))
    }

    /// A store on this file.
    pub(crate) fn open(&self, file: &std::path::Path) -> Result<Arc<dyn Broker>> {
        let url = format!("sqlite:{}?synchronous={}", file.display(), self.synchronous);
        Ok(SqliteStore::open(Options::from_url(&url)?)?)
    }

    /// A task for this queue, with a time-ordered id.
    pub(crate) fn task(&self, queue: &str) -> NewTask {
        let id = TaskId::fresh(SystemClock.now(), &self.chance);
        NewTask::new(
            name(queue),
            id,
            TypeName::new(TASK).expect("a sound name"),
            Bytes::from_static(&PAYLOAD),
        )
    }

    /// Fills a queue, in batches of 1,000.
    pub(crate) async fn preload(&self, store: &dyn Broker, queue: &str, tasks: usize) -> Result<()> {
        let mut left = tasks;
        while left > 0 {
            let batch = left.min(1_000);
            store.enqueue((0..batch).map(|_| self.task(queue)).collect()).await?;
            left -= batch;
        }
        Ok(())
    }
}

/// A queue's name.
pub(crate) fn name(queue: &str) -> QueueName {
    QueueName::new(queue).expect("queue names here are sound")
}

/// A pool with one queue of the same name.
pub(crate) fn pool(pool: &str, workers: u32) -> PoolConfig {
    let owns = vec![WeightedQueue { queue: name(pool), weight: 1 }];
    PoolConfig { owns, ..PoolConfig::new(PoolName::new(pool).expect("pool names here are sound"), workers) }
}

/// A worker as the facade composes it: the whole chain of layers around this handler.
pub(crate) fn worker<H, Args>(
    store: &Arc<dyn Broker>,
    pools: Vec<PoolConfig>,
    states: States,
    handler: H,
) -> Result<Running>
where
    H: Handler<Args>,
    Args: 'static,
{
    let stack = Stack::new(poolwright_middleware::Options::default());
    let mut router = Router::new();
    router.handle_as(TASK, handler).wrap(move |pool, service| stack.service(pool, service));
    let rules = Rules::default();
    let routes = router.build(pools.iter().map(|pool| &pool.name), &rules, &states)?;
    Server::builder(Arc::clone(store))
        .pools(pools)
        .states(states)
        .rules(rules)
        .services(Arc::new(routes))
        .start()
        .context("the worker does not start")
}
