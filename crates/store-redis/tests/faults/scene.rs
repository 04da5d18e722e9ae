//! A server, a proxy before it that cuts, and a store that goes through the proxy, by a clock that the test moves.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use poolwright_broker::{Dispatch, Error, Held, Inspect, Submit};
use poolwright_conformance::START;
use poolwright_conformance::builders::{claim, complete, key, queues};
use poolwright_core::clock::ManualClock;
use poolwright_core::{Chance, Clock, NewTask, Settlement, State, TaskRecord, Timestamp};
use poolwright_store_redis::RedisStore;
use poolwright_testbed::{Direction, Fault, Proxy, RedisServer};

use crate::eager;
use crate::stage::keyspace::assert_sound;

/// The states, in the order of [`Scene::states`].
pub(crate) const STATES: [State; 6] =
    [State::Pending, State::Active, State::Scheduled, State::Retry, State::Archived, State::Completed];

/// In how many places a call is cut each way, at most.
const CUTS_EACH_WAY: u64 = 24;

pub(crate) struct Scene {
    pub(crate) server: RedisServer,
    pub(crate) proxy: Proxy,
    /// Goes through the proxy.
    pub(crate) store: Arc<RedisStore>,
    /// Another process, which nothing disturbs.
    pub(crate) other: Arc<RedisStore>,
    pub(crate) clock: ManualClock,
    claims: AtomicU64,
}

impl Scene {
    pub(crate) async fn new() -> Self {
        let server = RedisServer::start().await.unwrap();
        let proxy = Proxy::before(&server).unwrap();
        let clock = ManualClock::at(START);
        let store = open_at(proxy.url(), &clock, 1).await;
        let other = open_at(&server.url(), &clock, 2).await;
        Self { server, proxy, store, other, clock, claims: 1.into() }
    }

    pub(crate) fn pass(&self, secs: u64) {
        self.clock.advance(Duration::from_secs(secs));
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Performs a call uncut, and says where calls like it can be cut each way: before its first byte, within, before its last.
    /// Those that are cut must not be shorter.
    pub(crate) async fn cuts<T>(&self, call: impl AsyncFnOnce() -> Result<T, Error>) -> Vec<Fault> {
        let before = self.proxy.traffic();
        call().await.unwrap();
        let after = self.proxy.traffic();
        let ways = [
            (Direction::ToServer, after.to_server - before.to_server),
            (Direction::ToClient, after.to_client - before.to_client),
        ];
        let cuts = |(way, length): (Direction, u64)| {
            let step = (length / CUTS_EACH_WAY).max(1) as usize;
            let places = (0..length).step_by(step).chain([length.saturating_sub(1)]);
            places.map(move |at| Fault::CutAfter(way, at))
        };
        ways.into_iter().flat_map(cuts).collect()
    }

    /// Makes a call that is cut, and makes it once more if its answer was lost. Says whether that was so.
    pub(crate) async fn cut<T>(
        &self,
        cut: &Fault,
        mut call: impl AsyncFnMut() -> Result<T, Error>,
    ) -> (bool, Result<T, Error>) {
        let before = self.proxy.traffic().faults;
        self.proxy.arm(cut.clone());
        let (mut answer, mut lost) = (call().await, false);
        // While there is no new connection yet, a repetition does not leave this process.
        while matches!(&answer, Err(error) if error.is_retryable()) {
            lost = true;
            tokio::task::yield_now().await;
            answer = call().await;
        }
        self.proxy.until_faults(before + 1).await.unwrap_or_else(|error| panic!("{cut:?}: {error}"));
        (lost, answer)
    }

    /// Enqueues behind the proxy's back.
    pub(crate) async fn enqueue(&self, tasks: Vec<NewTask>) {
        for stored in self.other.enqueue(tasks).await.unwrap() {
            stored.unwrap();
        }
    }

    /// Claims so many behind the proxy's back.
    pub(crate) async fn claim(&self, count: u32) -> Vec<TaskRecord> {
        let id = self.claims.fetch_add(1, Ordering::Relaxed);
        let reply = self.other.claim(claim(id, count, &["q"])).await.unwrap();
        reply.claims.into_iter().map(|claim| claim.task).collect()
    }

    /// Enqueues tasks and has all of them end like this, behind the proxy's back.
    pub(crate) async fn settled(&self, tasks: Vec<NewTask>, settlement: &Settlement) {
        let count = tasks.len();
        self.enqueue(tasks).await;
        let running = self.claim(u32::try_from(count).unwrap()).await;
        assert_eq!(running.len(), count);
        self.settle(&running, settlement).await;
    }

    pub(crate) async fn settle(&self, running: &[TaskRecord], settlement: &Settlement) {
        let held = running.iter().map(|task| (Held::of(task).unwrap(), settlement.clone())).collect();
        for settled in self.other.settle(held).await.unwrap() {
            settled.unwrap();
        }
    }

    /// How many tasks there are in each state, in the order of [`STATES`].
    pub(crate) async fn states(&self) -> [u64; 6] {
        let stats = self.other.queue_stats(queues(&["q"])).await.unwrap().remove(0);
        STATES.map(|state| stats.count(state))
    }

    /// Ended attempts ever, and those of them that failed.
    pub(crate) async fn counted(&self) -> (u64, u64) {
        let stats = self.other.queue_stats(queues(&["q"])).await.unwrap().remove(0);
        (stats.processed, stats.failed)
    }

    pub(crate) async fn state_of(&self, id: &str) -> Option<State> {
        self.other.get(key("q", id)).await.unwrap().map(|task| task.state)
    }

    pub(crate) async fn assert_sound(&self, when: impl Debug) {
        assert_sound(&self.server, when).await;
    }

    /// Hands out all that waits, which must be these ids, and has it succeed.
    pub(crate) async fn work_off(&self, ids: &[String]) {
        let running = self.claim(2_000).await;
        let mut got: Vec<&str> = running.iter().map(|task| task.key.id.as_str()).collect();
        let mut wanted: Vec<&str> = ids.iter().map(String::as_str).collect();
        got.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(got, wanted);
        self.settle(&running, &complete()).await;
        self.assert_sound("after the work").await;
    }
}

async fn open_at(url: &str, clock: &ManualClock, seed: u64) -> Arc<RedisStore> {
    RedisStore::open_with_clock(eager(url), Arc::new(clock.clone()), Chance::seeded(seed)).await.unwrap()
}
