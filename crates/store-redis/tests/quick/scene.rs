//! A server, two stores on it as two processes would have them, and short words for what is done to them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use poolwright_broker::{ClaimReply, ClaimRequest, Dispatch, Error, Held, Inspect, QueueStats, Submit};
use poolwright_conformance::Harness;
use poolwright_conformance::builders::{claim, complete, key, queues};
use poolwright_core::{NewTask, Settlement, TaskRecord};
use poolwright_store_redis::RedisStore;
use poolwright_testbed::Reply;

use crate::stage::RedisHarness;

/// What one settlement is answered with.
pub(crate) type Ended = Result<Option<poolwright_core::State>, Error>;

pub(crate) struct Scene {
    pub(crate) harness: RedisHarness,
    pub(crate) store: Arc<RedisStore>,
    /// Another process.
    pub(crate) other: Arc<RedisStore>,
    claims: AtomicU64,
}

impl Scene {
    pub(crate) async fn new() -> Self {
        let harness = RedisHarness::new(1).await;
        let (store, other) = (harness.store(), harness.another().await);
        Self { harness, store, other, claims: 1.into() }
    }

    pub(crate) async fn pass(&self, secs: u64) {
        self.harness.elapse(Duration::from_secs(secs)).await;
    }

    /// A command behind the stores' back.
    pub(crate) async fn redis(&self, args: &[impl AsRef<[u8]>]) -> Reply {
        self.harness.servers().single().command(args).await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// How often the server has performed this command, in scripts and outside.
    pub(crate) async fn calls(&self, command: &str) -> u64 {
        let info = self.redis(&["INFO", "commandstats"]).await;
        let line = info.line(&format!("cmdstat_{command}")).unwrap_or("calls=0,");
        line.split(['=', ',']).nth(1).unwrap().parse().unwrap()
    }

    /// Enqueues tasks, all of which must be taken.
    pub(crate) async fn enqueue(&self, tasks: Vec<NewTask>) {
        for stored in self.store.enqueue(tasks).await.unwrap() {
            stored.unwrap();
        }
    }

    pub(crate) fn request(&self, slots: u32, from: &[&str]) -> ClaimRequest {
        claim(self.claims.fetch_add(1, Ordering::Relaxed), slots, from)
    }

    pub(crate) async fn claim_from(&self, slots: u32, from: &[&str]) -> ClaimReply {
        self.store.claim(self.request(slots, from)).await.unwrap()
    }

    pub(crate) async fn claim(&self, slots: u32) -> Vec<TaskRecord> {
        tasks_of(self.claim_from(slots, &["q"]).await)
    }

    /// Enqueues tasks and claims all of them.
    pub(crate) async fn running(&self, tasks: Vec<NewTask>) -> Vec<TaskRecord> {
        let count = tasks.len();
        self.enqueue(tasks).await;
        let running = self.claim(u32::try_from(count).unwrap()).await;
        assert_eq!(running.len(), count);
        running
    }

    pub(crate) async fn settle(&self, settlements: Vec<(Held, Settlement)>) -> Vec<Ended> {
        let outcomes = self.store.settle(settlements).await.unwrap();
        outcomes.into_iter().map(|outcome| outcome.map(|settled| settled.state)).collect()
    }

    /// All of them succeed, and nothing of them is kept.
    pub(crate) async fn complete(&self, tasks: &[TaskRecord]) -> Vec<Ended> {
        self.settle(tasks.iter().map(|task| (held(task), complete())).collect()).await
    }

    /// Panics unless all of them end.
    pub(crate) async fn end(&self, tasks: &[TaskRecord]) {
        assert_eq!(self.complete(tasks).await, vec![Ok(None); tasks.len()]);
    }

    pub(crate) async fn get(&self, id: &str) -> Option<TaskRecord> {
        self.other.get(key("q", id)).await.unwrap()
    }

    pub(crate) async fn stats(&self) -> QueueStats {
        self.other.queue_stats(queues(&["q"])).await.unwrap().remove(0)
    }

    /// What a list holds, from its right end on: what came first.
    pub(crate) async fn list(&self, name: &str) -> Vec<String> {
        let reply = self.redis(&["LRANGE", &format!("asynq:{{q}}:{name}"), "0", "-1"]).await;
        reply.items().iter().rev().map(|id| id.text().unwrap().to_owned()).collect()
    }

    /// All keys, in order.
    pub(crate) async fn keys(&self) -> Vec<String> {
        self.harness.servers().keys().await
    }

    /// A command of the test passes by the sound that it breaks; this is for one that a task's hash is given.
    pub(crate) async fn set(&self, id: &str, field: &str, value: &[u8]) {
        let hash = format!("asynq:{{q}}:t:{id}");
        self.redis(&[b"HSET", hash.as_bytes(), field.as_bytes(), value]).await;
    }
}

pub(crate) fn held(task: &TaskRecord) -> Held {
    Held::of(task).unwrap()
}

pub(crate) fn tasks_of(reply: ClaimReply) -> Vec<TaskRecord> {
    reply.claims.into_iter().map(|claim| claim.task).collect()
}

pub(crate) fn ids(tasks: &[TaskRecord]) -> Vec<&str> {
    tasks.iter().map(|task| task.key.id.as_str()).collect()
}

/// So many names that begin like this.
pub(crate) fn names(stem: &str, count: usize) -> Vec<String> {
    (0..count).map(|at| format!("{stem}{at:04}")).collect()
}
