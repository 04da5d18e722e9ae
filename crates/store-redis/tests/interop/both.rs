//! A server of one's own with both sides on it: our store, and Go's asynq.

use std::sync::Arc;
use std::time::Duration;

use poolwright_broker::{
    Claim, ClaimId, ClaimRequest, Demand, Dispatch, Error, Held, Inspect, PageRequest, QueueStats, Settled,
    Submit, TakeOver, WeightedQueue,
};
use poolwright_core::{
    Chance, NewTask, PoolName, QueueName, Settlement, State, TaskId, TaskKey, TaskRecord, Timestamp, TypeName,
};
use poolwright_store_redis::{RedisOptions, RedisStore};
use poolwright_testbed::{RedisServer, Reply};

use crate::go::Go;
pub(crate) use crate::go::until;

pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// Both sides on one server.
pub(crate) struct Both {
    pub(crate) server: RedisServer,
    pub(crate) store: Arc<RedisStore>,
    pub(crate) go: Go,
}

impl Both {
    /// A fresh server; none where Go is not installed.
    pub(crate) async fn start() -> Option<Self> {
        crate::go::program()?;
        let server = RedisServer::start().await.unwrap();
        let go = Go::on(server.url())?;
        let store = open(&server).await;
        Some(Self { server, store, go })
    }

    /// Another store on the server, as another process has one.
    pub(crate) async fn another(&self) -> Arc<RedisStore> {
        open(&self.server).await
    }

    /// One command past both sides.
    pub(crate) async fn redis(&self, args: &[&str]) -> Reply {
        self.server.command(args).await.unwrap()
    }

    /// Whether a key is there.
    pub(crate) async fn has(&self, key: &str) -> bool {
        self.redis(&["EXISTS", key]).await == 1
    }

    /// All keys, in order.
    pub(crate) async fn keys(&self) -> Vec<String> {
        let reply = self.redis(&["KEYS", "*"]).await;
        let mut keys: Vec<_> = reply.items().iter().map(|key| key.text().unwrap().to_owned()).collect();
        keys.sort_unstable();
        keys
    }

    /// Waits until the server's clock shows another second, by which both sides tell many things apart.
    pub(crate) async fn until_next_second(&self) {
        let second = async || self.redis(&["TIME"]).await.items()[0].integer();
        let now = second().await;
        until("another second", async || (second().await != now).then_some(())).await;
    }

    /// Our record of a task of the queue `q`.
    pub(crate) async fn task(&self, id: &str) -> TaskRecord {
        self.store.get(key("q", id)).await.unwrap().unwrap_or_else(|| panic!("there is no task {id}"))
    }

    /// Enqueues; all have to be taken.
    pub(crate) async fn send(&self, tasks: Vec<NewTask>) {
        for outcome in self.store.enqueue(tasks).await.unwrap() {
            outcome.unwrap();
        }
    }

    /// Claims at most so many tasks of a queue, for a minute.
    pub(crate) async fn claim(&self, of: &str, slots: u32) -> Vec<TaskRecord> {
        claim(&*self.store, of, slots, MINUTE).await
    }

    /// Claims the only task of the queue `q`.
    pub(crate) async fn claim_one(&self, id: &str) -> TaskRecord {
        let mut claimed = self.claim("q", 10).await;
        assert_eq!(ids(&claimed), [id]);
        claimed.remove(0)
    }

    /// Settles what is held.
    pub(crate) async fn settle(&self, task: &TaskRecord, settlement: Settlement) -> Result<Settled, Error> {
        let held = Held::of(task).expect("a claimed task has a token");
        self.store.settle(vec![(held, settlement)]).await.unwrap().remove(0)
    }

    /// Settles what is held, which has to succeed.
    pub(crate) async fn end(&self, task: &TaskRecord, settlement: Settlement) -> Option<State> {
        self.settle(task, settlement).await.unwrap().state
    }

    /// A queue in numbers.
    pub(crate) async fn stats(&self, of: &str) -> QueueStats {
        self.store.queue_stats(vec![queue(of)]).await.unwrap().remove(0)
    }

    /// The ids of a page of a queue.
    pub(crate) async fn page(&self, of: &str, state: State) -> Vec<String> {
        let request = PageRequest { queue: queue(of), state, after: None, limit: 100 };
        ids(&self.store.page(request).await.unwrap().tasks)
    }
}

pub(crate) async fn open(server: &RedisServer) -> Arc<RedisStore> {
    RedisStore::open(RedisOptions::from_url(&server.unix_url()).unwrap()).await.unwrap()
}

/// Claims at most so many tasks of a queue.
pub(crate) async fn claim(store: &dyn Dispatch, of: &str, slots: u32, lease: Duration) -> Vec<TaskRecord> {
    let chance = Chance::from_entropy();
    let demand = Demand {
        pool: PoolName::new("pool").unwrap(),
        slots,
        queues: vec![WeightedQueue { queue: queue(of), weight: 1 }],
        seed: chance.next(),
    };
    let request = ClaimRequest { id: ClaimId::fresh(&chance), resent: false, lease, demands: vec![demand] };
    let claims = store.claim(request).await.unwrap().claims;
    claims.into_iter().map(|Claim { task, .. }| task).collect()
}

pub(crate) fn queue(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

pub(crate) fn key(of: &str, id: &str) -> TaskKey {
    TaskKey::new(queue(of), TaskId::new(id).unwrap())
}

/// A task of the queue `q`.
pub(crate) fn task(id: &str, payload: &str) -> NewTask {
    NewTask::new(queue("q"), TaskId::new(id).unwrap(), TypeName::new("t").unwrap(), payload.to_owned())
}

pub(crate) fn ids(tasks: &[TaskRecord]) -> Vec<String> {
    tasks.iter().map(|task| task.key.id.to_string()).collect()
}

/// All that has expired in a queue.
pub(crate) fn all_of(queue: QueueName) -> TakeOver {
    TakeOver { queues: vec![queue], limit: 100, lease: MINUTE, not_after: Timestamp::MAX }
}

/// It worked, and nothing is kept of it.
pub(crate) fn done() -> Settlement {
    Settlement::Complete { retain_for: Duration::ZERO, result: None }
}
