//! A store, a play and what a worker needs to run it.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use poolwright_broker::{Broker, ClaimId, ClaimRequest, Demand, Inspect, Submit, WeightedQueue};
use poolwright_conformance::{SAFETY, START, builders};
use poolwright_core::clock::ManualClock;
use poolwright_core::{
    BoxError, BoxFuture, Chance, Clock, DeadLetter, DeadLetterSink, NewTask, Policy, PoolName, RetryPolicy,
    State, TaskRecord, TypeName,
};
use poolwright_handler::{Context, Raw, States};
use poolwright_store_memory::MemoryStore;
use poolwright_worker::{Borrow, Borrowed, Builder, Options, PoolConfig, Router, Rules, Server};

use crate::faulty::Faulty;
use crate::play::Play;

/// The type of all tasks.
pub(crate) const TYPE: &str = "test:task";

pub(crate) struct Rig {
    pub(crate) clock: ManualClock,
    pub(crate) store: Arc<Faulty>,
    pub(crate) play: Arc<Play>,
}

impl Drop for Rig {
    fn drop(&mut self) {
        // Whatever a failed test left blocked comes to its end.
        self.play.drop_curtain();
    }
}

impl Rig {
    pub(crate) fn new() -> Self {
        let clock = ManualClock::at(START);
        let mut rig = Self::on(Arc::new(clock.clone()));
        rig.clock = clock;
        rig
    }

    /// A rig whose store has this clock.
    pub(crate) fn on(clock: Arc<dyn Clock>) -> Self {
        let memory = MemoryStore::new(clock, Chance::seeded(1));
        Self { clock: ManualClock::at(START), store: Faulty::new(memory), play: Play::new() }
    }

    /// A worker with these pools, the play as its only handler, and short patience.
    pub(crate) fn server(&self, pools: &[PoolConfig]) -> Builder {
        let mut router = Router::new();
        self.cast(&mut router);
        self.server_with(pools, router)
    }

    /// Gives the play's handler to a router.
    pub(crate) fn cast(&self, router: &mut Router) {
        let play = Arc::clone(&self.play);
        router.handle_as(TYPE, move |raw: Raw, cx: Context| Arc::clone(&play).act(raw, cx));
    }

    /// The same with a router of the test's own.
    pub(crate) fn server_with(&self, pools: &[PoolConfig], router: Router) -> Builder {
        let rules = rules(Policy::default());
        let routes = router.build(pools.iter().map(|pool| &pool.name), &rules, &States::default()).unwrap();
        Server::builder(Arc::clone(&self.store) as Arc<dyn Broker>)
            .pools(pools.iter().cloned())
            .services(Arc::new(routes))
            .rules(rules)
            .chance(Chance::seeded(2))
            .options(options())
    }

    /// The store's time.
    pub(crate) fn store_now(&self) -> poolwright_core::Timestamp {
        self.store.now()
    }

    pub(crate) async fn enqueue(&self, tasks: impl IntoIterator<Item = NewTask>) {
        for outcome in self.store.enqueue(tasks.into_iter().collect()).await.unwrap() {
            outcome.unwrap();
        }
    }

    pub(crate) async fn get(&self, id: &str) -> Option<TaskRecord> {
        self.store.get(builders::key(builders::QUEUE, id)).await.unwrap()
    }

    pub(crate) async fn state(&self, id: &str) -> Option<State> {
        self.get(id).await.map(|task| task.state)
    }

    /// Waits until the store shows this of a task of the usual queue.
    pub(crate) async fn until_task(&self, id: &str, holds: impl Fn(Option<&TaskRecord>) -> bool) {
        let key = builders::key(builders::QUEUE, id);
        self.store.until(async |store| holds(store.get(key.clone()).await.unwrap().as_ref())).await;
    }

    /// Claims as another process would that dies right after.
    pub(crate) async fn claim_and_die(&self, count: u32) -> Vec<TaskRecord> {
        let demand = Demand {
            pool: name("elsewhere"),
            slots: count,
            queues: vec![WeightedQueue { queue: builders::queue(builders::QUEUE), weight: 1 }],
            seed: 1,
        };
        let lease = options().lease;
        let request = ClaimRequest { id: ClaimId(7), resent: false, lease, demands: vec![demand] };
        let reply = poolwright_broker::Dispatch::claim(&*self.store, request).await.unwrap();
        reply.claims.into_iter().map(|claim| claim.task).collect()
    }
}

/// Short waits for what is waited for in true time, long ones for what must not happen by itself.
pub(crate) fn options() -> Options {
    let ms = Duration::from_millis;
    Options {
        lease: ms(300),
        stop_grace: ms(60),
        slack: ms(30),
        max_stall: Duration::from_secs(600),
        grace: ms(100),
        flush: Duration::from_secs(5),
        beat_every: ms(40),
        beat_lasts: Duration::from_secs(10),
        promote_gap: ms(5),
        promote_at_most: ms(20),
        reclaim_every: ms(20),
        letters_every: ms(40),
        backoff_min: ms(5),
        backoff_max: ms(40),
        ..Options::default()
    }
}

/// Retries wait for nothing.
pub(crate) fn rules(policy: Policy) -> Rules {
    let at_once = RetryPolicy::Fixed { delay: Duration::ZERO };
    Rules::default().with(TypeName::new(TYPE).unwrap(), Policy { retry: at_once, ..policy })
}

pub(crate) fn name(pool: &str) -> PoolName {
    PoolName::new(pool).unwrap()
}

fn weighted(queue: &str, weight: u32) -> WeightedQueue {
    WeightedQueue { queue: builders::queue(queue), weight }
}

/// A pool with queues of its own.
pub(crate) fn pool(pool: &str, workers: u32, queues: &[(&str, u32)]) -> PoolConfig {
    let owns = queues.iter().map(|(queue, weight)| weighted(queue, *weight)).collect();
    PoolConfig { owns, ..PoolConfig::new(name(pool), workers) }
}

/// The pool `main` on the usual queue.
pub(crate) fn main_pool(workers: u32) -> PoolConfig {
    pool("main", workers, &[(builders::QUEUE, 1)])
}

/// A pool that borrows each queue from its home.
pub(crate) fn elastic(pool: &str, workers: u32, borrow: Borrow, from: &[(&str, &str)]) -> PoolConfig {
    let lent = |(queue, home): &(&str, &str)| Borrowed { queue: weighted(queue, 1), home: name(home) };
    PoolConfig { borrows: from.iter().map(lent).collect(), borrow, ..PoolConfig::new(name(pool), workers) }
}

/// A task that plays this part.
pub(crate) fn task(id: &str, part: &'static str) -> builders::TaskBuilder {
    builders::task(id).payload(part)
}

/// So many tasks of one part, `prefix0`, `prefix1`, …
pub(crate) fn many(prefix: &str, count: usize, part: &'static str) -> Vec<NewTask> {
    (0..count).map(|at| task(&format!("{prefix}{at}"), part).build()).collect()
}

/// The same in another queue.
pub(crate) fn many_in(queue: &str, count: usize, part: &'static str) -> Vec<NewTask> {
    (0..count).map(|at| task(&format!("{queue}{at}"), part).queue(queue).build()).collect()
}

/// Turns a hang into a failure.
pub(crate) async fn safely(story: impl Future<Output = ()>) {
    tokio::time::timeout(SAFETY, story).await.expect("the story hangs");
}

/// A sink that can be away.
#[derive(Default)]
pub(crate) struct Sink {
    pub(crate) letters: Mutex<Vec<DeadLetter>>,
    pub(crate) trouble: Mutex<Option<SinkTrouble>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SinkTrouble {
    Fails,
    Panics,
}

impl Sink {
    pub(crate) fn ids(&self) -> Vec<String> {
        let mut ids: Vec<_> = self.letters.lock().unwrap().iter().map(|l| l.task.id.to_string()).collect();
        ids.sort();
        ids
    }
}

impl DeadLetterSink for Sink {
    fn record<'a>(&'a self, letters: &'a [DeadLetter]) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async move {
            let trouble = *self.trouble.lock().unwrap();
            match trouble {
                Some(SinkTrouble::Fails) => Err("the sink is away".into()),
                Some(SinkTrouble::Panics) => panic!("the sink is broken"),
                None => {
                    let mut stored = self.letters.lock().unwrap();
                    for letter in letters {
                        // As every sink: the same letter twice is one letter.
                        if !stored.iter().any(|l| l.task == letter.task && l.token == letter.token) {
                            stored.push(letter.clone());
                        }
                    }
                    Ok(())
                }
            }
        })
    }
}
