//! What peers in Go are known to leave behind, each written as they leave it: ours makes no such thing, and is not held up by it.
//!
//! These need no Go. What takes one is in `interop`.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use std::time::Duration;

use poolwright_broker::{
    ArchiveLimits, ClaimId, ClaimRequest, Demand, Dispatch, Error, Find, Held, Inspect, Quarantined, Submit,
    TakeOver, Upkeep, WeightedQueue,
};
use poolwright_conformance::START;
use poolwright_core::clock::ManualClock;
use poolwright_core::{
    Chance, Class, Clock, NewTask, PoolName, QueueName, Settlement, State, Subject, TaskId, TaskKey,
    TaskRecord, Timestamp, TypeName, UniqueLock,
};
use poolwright_store_redis::wire::{TaskMessage, Wire};
use poolwright_store_redis::{RedisOptions, RedisStore};
use poolwright_testbed::{RedisServer, Reply};

const MINUTE: Duration = Duration::from_secs(60);

/// A store, the server behind its back, and the clock that rules: years ahead of the server's, so that nothing goes by itself.
struct Scene {
    server: RedisServer,
    clock: ManualClock,
    store: Arc<RedisStore>,
}

impl Scene {
    async fn new() -> Self {
        let server = RedisServer::start().await.unwrap();
        let clock = ManualClock::at(START);
        let options = RedisOptions::from_url(&server.unix_url()).unwrap();
        let rules = Arc::new(clock.clone());
        let store = RedisStore::open_with_clock(options, rules, Chance::seeded(7)).await.unwrap();
        Self { server, clock, store }
    }

    async fn redis(&self, args: &[impl AsRef<[u8]>]) -> Reply {
        self.server.command(args).await.unwrap()
    }

    async fn keys(&self) -> Vec<String> {
        let reply = self.redis(&["KEYS", "*"]).await;
        let mut keys: Vec<_> = reply.items().iter().map(|key| key.text().unwrap().to_owned()).collect();
        keys.sort_unstable();
        keys
    }

    async fn has(&self, key: &str) -> bool {
        self.redis(&["EXISTS", key]).await == 1
    }

    fn secs(&self) -> String {
        self.clock.now().as_secs().to_string()
    }

    /// A task as Go stores it: its hash, without a place in a list.
    async fn hash(&self, id: &str, state: &str, more: &[(&str, &str)], message: TaskMessage) {
        let hash = format!("asynq:{{q}}:t:{id}");
        let message = message.to_bytes();
        let mut args: Vec<&[u8]> =
            vec![b"HSET", hash.as_bytes(), b"msg", &message, b"state", state.as_bytes()];
        args.extend(more.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]));
        self.redis(&args).await;
        self.redis(&["SADD", "asynq:queues", "q"]).await;
    }

    /// A task that Go has in one of its sets.
    async fn in_set(&self, id: &str, state: &str, score: &str) {
        self.hash(id, state, &[], message(id)).await;
        self.redis(&["ZADD", &format!("asynq:{{q}}:{state}"), score, id]).await;
    }

    /// A task that a worker in Go holds, or has left behind.
    async fn active(&self, id: &str, lease: Option<Timestamp>, message: Option<&[u8]>) {
        match message {
            Some(bytes) => {
                let hash = format!("asynq:{{q}}:t:{id}");
                self.redis(&[&b"HSET"[..], hash.as_bytes(), b"msg", bytes, b"state", b"active"]).await;
            }
            None => self.hash(id, "active", &[], crate::message(id)).await,
        }
        self.redis(&["LPUSH", "asynq:{q}:active", id]).await;
        if let Some(until) = lease {
            self.redis(&["ZADD", "asynq:{q}:lease", &until.as_secs().to_string(), id]).await;
        }
    }

    async fn enqueue(&self, task: NewTask) -> Result<(), Error> {
        self.store.enqueue(vec![task]).await.unwrap().remove(0).map(drop)
    }

    async fn claim(&self, slots: u32) -> Vec<TaskRecord> {
        let demand = Demand {
            pool: PoolName::new("pool").unwrap(),
            slots,
            queues: vec![WeightedQueue { queue: q(), weight: 1 }],
            seed: 1,
        };
        let id = ClaimId(u64::try_from(self.clock.now().as_micros()).unwrap());
        let request = ClaimRequest { id, resent: false, lease: MINUTE, demands: vec![demand] };
        self.store.claim(request).await.unwrap().claims.into_iter().map(|claim| claim.task).collect()
    }

    async fn end(&self, task: &TaskRecord, settlement: Settlement) {
        let settled = self.store.settle(vec![(Held::of(task).unwrap(), settlement)]).await.unwrap().remove(0);
        settled.unwrap();
    }

    async fn take_over(&self) -> Vec<TaskRecord> {
        let request = TakeOver { queues: vec![q()], limit: 100, lease: MINUTE, not_after: Timestamp::MAX };
        self.store.take_over(request).await.unwrap()
    }

    /// Takes over what a Go worker left behind: its lease has expired and then stands still.
    async fn take_over_from_go(&self) -> Vec<String> {
        self.clock.advance(MINUTE);
        assert_eq!(self.take_over().await, [], "it may only be slow");
        self.clock.advance(MINUTE);
        ids(&self.take_over().await)
    }

    async fn get(&self, id: &str) -> Option<TaskRecord> {
        self.store.get(key(id)).await.unwrap()
    }

    async fn quarantined(&self) -> Vec<Quarantined> {
        self.store.quarantine(q(), 10).await.unwrap()
    }
}

fn q() -> QueueName {
    QueueName::new("q").unwrap()
}

fn key(id: &str) -> TaskKey {
    TaskKey::new(q(), TaskId::new(id).unwrap())
}

fn task(id: &str) -> NewTask {
    NewTask::new(q(), TaskId::new(id).unwrap(), TypeName::new("t").unwrap(), "")
}

fn unique(id: &str) -> NewTask {
    NewTask { unique: Some(UniqueLock::new("t:lock", 100 * MINUTE)), ..task(id) }
}

/// A task as a producer in Go writes it.
fn message(id: &str) -> TaskMessage {
    TaskMessage {
        task_type: "t".into(),
        id: id.into(),
        queue: "q".into(),
        retry: 25,
        timeout: 1_800,
        ..TaskMessage::default()
    }
}

fn ids(tasks: &[TaskRecord]) -> Vec<String> {
    tasks.iter().map(|task| task.key.id.to_string()).collect()
}

fn done() -> Settlement {
    Settlement::Complete { retain_for: Duration::ZERO, result: None }
}

const LOCK: &str = "asynq:{q}:unique:t:lock";

#[tokio::test]
async fn an_id_conflict_leaks_no_lock() {
    let scene = Scene::new().await;
    scene.enqueue(task("a")).await.unwrap();
    let refused = scene.enqueue(unique("a")).await;
    assert!(matches!(refused, Err(Error::DuplicateId { .. })), "{refused:?}");
    assert!(!scene.has(LOCK).await);
    scene.enqueue(unique("b")).await.unwrap();
}

#[tokio::test]
async fn a_lock_that_names_a_task_which_does_not_hold_it_is_free() {
    let scene = Scene::new().await;
    // Go takes the lock, finds that the id is taken, and leaves it.
    scene.enqueue(task("a")).await.unwrap();
    scene.redis(&["SET", LOCK, "a", "EX", "3600"]).await;
    scene.enqueue(unique("b")).await.unwrap();
    let refused = scene.enqueue(unique("c")).await;
    assert_eq!(refused, Err(Error::DuplicateUnique { holder: key("b") }));

    // A Go worker archives a unique task and leaves its lock.
    scene.redis(&["LREM", "asynq:{q}:pending", "0", "b"]).await;
    scene.redis(&["ZADD", "asynq:{q}:archived", "1900000000", "b"]).await;
    scene.redis(&["HSET", "asynq:{q}:t:b", "state", "archived"]).await;
    let mended = scene.store.reconcile(vec![q()]).await.unwrap();
    assert_eq!(mended.locks, 1);
    scene.enqueue(unique("c")).await.unwrap();
}

#[tokio::test]
async fn a_late_result_makes_no_ghost_and_one_of_gos_blocks_no_id() {
    let scene = Scene::new().await;
    scene.enqueue(task("a")).await.unwrap();
    let claimed = scene.claim(1).await.remove(0);
    scene.end(&claimed, done()).await;
    let late = scene.store.store_result(Held::of(&claimed).unwrap(), "late".into()).await;
    assert_eq!(late, Err(Error::NotFound { key: key("a") }));
    assert!(!scene.has("asynq:{q}:t:a").await);

    for id in ["a", "b"] {
        scene.redis(&["HSET", &format!("asynq:{{q}}:t:{id}"), "result", "late"]).await;
        assert_eq!(scene.get(id).await, None);
    }
    scene.enqueue(unique("a")).await.unwrap();
    assert_eq!(scene.get("a").await.unwrap().result, None, "the ghost is nothing of it");
    scene.store.reconcile(vec![q()]).await.unwrap();
    assert!(!scene.has("asynq:{q}:t:b").await);
    assert_eq!(ids(&scene.claim(2).await), ["a"]);
}

#[tokio::test]
async fn an_id_without_a_task_is_set_aside_wherever_it_stands() {
    let scene = Scene::new().await;
    scene.redis(&["LPUSH", "asynq:{q}:pending", "ghost"]).await;
    scene.enqueue(task("behind")).await.unwrap();
    assert_eq!(ids(&scene.claim(2).await), ["behind"]);
    // As a worker in Go leaves it: active with a lease, and a hash that holds a state only.
    let past = scene.secs();
    scene.redis(&["HSET", "asynq:{q}:t:half", "state", "active"]).await;
    scene.redis(&["LPUSH", "asynq:{q}:active", "half"]).await;
    scene.redis(&["ZADD", "asynq:{q}:lease", &past, "half"]).await;
    scene.redis(&["ZADD", "asynq:{q}:scheduled", &past, "soon"]).await;
    scene.redis(&["ZADD", "asynq:{q}:retry", &past, "again"]).await;
    assert_eq!(scene.take_over().await, []);
    assert_eq!(scene.store.promote_due(vec![q()], 10).await.unwrap().next_due, None);
    let mut aside: Vec<_> = scene.quarantined().await.into_iter().map(|one| one.id).collect();
    aside.sort_unstable();
    assert_eq!(aside, ["again", "ghost", "half", "soon"]);
    let stats = scene.store.queue_stats(vec![q()]).await.unwrap().remove(0);
    assert_eq!((stats.pending, stats.active, stats.scheduled, stats.retry), (0, 1, 0, 0));
}

#[tokio::test]
async fn a_message_beyond_reading_stops_neither_claims_nor_rescue() {
    let scene = Scene::new().await;
    let rubbish = b"\x0a\xffrubbish";
    let hash = "asynq:{q}:t:bad";
    scene.redis(&[&b"HSET"[..], hash.as_bytes(), b"msg", rubbish, b"state", b"pending"]).await;
    scene.redis(&["LPUSH", "asynq:{q}:pending", "bad"]).await;
    scene.enqueue(task("good")).await.unwrap();
    let claimed = scene.claim(2).await;
    assert_eq!(ids(&claimed), ["good"]);
    scene.end(&claimed[0], done()).await;
    // asynq's recoverer fails as a whole where one of the expired ones cannot be read.
    let past = scene.clock.now();
    scene.active("poison", Some(past), Some(rubbish)).await;
    scene.active("orphan", Some(past), None).await;
    assert_eq!(scene.take_over_from_go().await, ["orphan"]);
    let mut aside: Vec<_> = scene.quarantined().await;
    aside.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    assert_eq!(
        aside.iter().map(|one| (&one.id[..], &one.raw[..])).collect::<Vec<_>>(),
        [("bad", &rubbish[..]), ("poison", &rubbish[..])]
    );
}

#[tokio::test]
async fn an_active_task_without_a_lease_is_found_and_taken_over() {
    let scene = Scene::new().await;
    scene.active("leaseless", None, None).await;
    let odd = scene.secs();
    scene.redis(&["ZADD", "asynq:{q}:lease", &odd, "nobody"]).await;
    assert_eq!(scene.take_over_from_go().await, [""; 0], "it stands in no set");
    let mended = scene.store.reconcile(vec![q()]).await.unwrap();
    assert_eq!(mended.leaseless, 1);
    assert_eq!(scene.take_over_from_go().await, ["leaseless"]);
    assert_eq!(scene.redis(&["ZRANGE", "asynq:{q}:lease", "0", "-1"]).await.items().len(), 1);
}

#[tokio::test]
async fn an_archive_of_thousands_that_are_due_together_goes_in_steps() {
    let scene = Scene::new().await;
    let old = (scene.clock.now().as_secs() - 91 * 86_400).to_string();
    let mut connection = scene.server.connect().await.unwrap();
    for at in 0..9_000 {
        let (id, bytes) = (format!("old{at}"), message(&format!("old{at}")).to_bytes());
        let hash = format!("asynq:{{q}}:t:{id}");
        connection
            .command(&[&b"HSET"[..], hash.as_bytes(), b"msg", &bytes, b"state", b"archived"])
            .await
            .unwrap();
        connection.command(&["ZADD", "asynq:{q}:archived", &old, &id]).await.unwrap();
    }
    // asynq's own archive dies here with `too many results to unpack`, at every try.
    scene.enqueue(task("a")).await.unwrap();
    let claimed = scene.claim(1).await.remove(0);
    let archive = Settlement::Archive { error: "boom".to_owned(), class: Class::Permanent };
    scene.end(&claimed, archive).await;
    let limits = ArchiveLimits {
        queue: q(),
        tasks_max: 10_000,
        age_max: 90 * 1_440 * MINUTE,
        spare_unrecorded: false,
    };
    let mut trimmed = 0;
    loop {
        let swept = scene.store.sweep(vec![limits.clone()]).await.unwrap();
        assert!(swept.trimmed <= 1_000, "{swept:?}");
        trimmed += swept.trimmed;
        if !swept.more {
            break;
        }
    }
    assert_eq!(trimmed, 9_000);
    assert_eq!(scene.redis(&["DBSIZE"]).await, 8, "{:?}", scene.keys().await);
    assert_eq!(scene.get("a").await.unwrap().state, State::Archived);
}

#[tokio::test]
async fn hashes_that_gos_inspector_trimmed_are_found_and_removed() {
    let scene = Scene::new().await;
    let mut sent = unique("ours");
    sent.subjects = vec![Subject::new("knowledge", "kn_1")];
    scene.enqueue(sent).await.unwrap();
    // asynq's inspector archived both long ago and then trimmed their ids alone.
    scene.redis(&["LREM", "asynq:{q}:pending", "1", "ours"]).await;
    scene.redis(&["HSET", "asynq:{q}:t:ours", "state", "archived"]).await;
    scene.hash("theirs", "archived", &[], message("theirs")).await;
    scene.hash("kept", "completed", &[("result", "r")], message("kept")).await;
    scene.in_set("stays", "archived", &scene.secs()).await;
    scene.store.reconcile(vec![q()]).await.unwrap();
    for id in ["ours", "theirs", "kept"] {
        assert_eq!(scene.get(id).await, None, "{id}");
    }
    assert!(scene.get("stays").await.is_some());
    assert!(!scene.has(LOCK).await && !scene.has("asynq:{q}:subject:knowledge/kn_1").await);
}

/// A retry of a grouped task that Go's forwarder or ours moves back.
#[tokio::test]
async fn a_group_is_registered_when_its_task_comes_back() {
    let scene = Scene::new().await;
    let grouped = TaskMessage { group_key: "g:1".into(), ..message("a") };
    scene.hash("a", "retry", &[("group", "g:1")], grouped).await;
    scene.redis(&["ZADD", "asynq:{q}:retry", &scene.secs(), "a"]).await;
    assert_eq!(scene.store.promote_due(vec![q()], 10).await.unwrap().tasks, 1);
    assert_eq!(scene.redis(&["SMEMBERS", "asynq:{q}:groups"]).await.items()[0], "g:1");
    assert_eq!(scene.redis(&["ZSCORE", "asynq:{q}:g:g:1", "a"]).await, scene.secs().as_str());
    assert_eq!(scene.redis(&["HGET", "asynq:{q}:t:a", "state"]).await, "aggregating");

    // Go never aggregates one that was scheduled, and neither do we: it says so in its message only.
    scene.hash("b", "scheduled", &[], TaskMessage { group_key: "g:1".into(), ..message("b") }).await;
    scene.redis(&["ZADD", "asynq:{q}:scheduled", &scene.secs(), "b"]).await;
    scene.store.promote_due(vec![q()], 10).await.unwrap();
    assert_eq!(ids(&scene.claim(2).await), ["b"]);
}

#[tokio::test]
async fn a_set_that_nobody_aggregated_goes_back_to_a_group_that_is_registered() {
    let scene = Scene::new().await;
    let set = "asynq:{q}:g:g:1:7837f142-6337-4217-9276-8f27281b67d1";
    let (past, ahead) = (scene.clock.now().as_secs() - 1, scene.clock.now().as_secs() + 100);
    scene.hash("a", "aggregating", &[("group", "g:1")], message("a")).await;
    scene.redis(&["ZADD", set, "77", "a"]).await;
    scene.redis(&["ZADD", "asynq:{q}:aggregation_sets", &past.to_string(), set]).await;
    let living = format!("{set}0");
    scene.redis(&["ZADD", "asynq:{q}:aggregation_sets", &ahead.to_string(), &living]).await;
    scene.redis(&["ZADD", &living, "78", "b"]).await;
    scene.store.promote_due(vec![q()], 10).await.unwrap();
    scene.store.reconcile(vec![q()]).await.unwrap();
    assert_eq!(scene.redis(&["ZSCORE", "asynq:{q}:g:g:1", "a"]).await, "77");
    assert_eq!(scene.redis(&["SMEMBERS", "asynq:{q}:groups"]).await.items().len(), 1);
    assert!(!scene.has(set).await && scene.has(&living).await);
    scene.store.delete(key("a")).await.unwrap();
    assert!(!scene.has("asynq:{q}:groups").await, "with its last task the group goes");
}

#[tokio::test]
async fn a_grouped_task_takes_its_lock_along() {
    let scene = Scene::new().await;
    // asynq writes the lock of a grouped task to its message alone, and so cannot free it.
    let grouped = TaskMessage { unique_key: LOCK.into(), group_key: "g".into(), ..message("a") };
    scene.hash("a", "aggregating", &[("group", "g")], grouped).await;
    scene.redis(&["ZADD", "asynq:{q}:g:g", "1", "a"]).await;
    scene.redis(&["SADD", "asynq:{q}:groups", "g"]).await;
    scene.redis(&["SET", LOCK, "a", "EX", "3600"]).await;
    assert_eq!(scene.get("a").await.unwrap().unique.unwrap().key.as_ref(), "t:lock");
    scene.store.delete(key("a")).await.unwrap();
    assert_eq!(scene.keys().await, ["asynq:queues"]);
}

#[tokio::test]
async fn what_gos_removal_of_a_queue_leaves_goes_with_ours() {
    let scene = Scene::new().await;
    let now = scene.secs();
    scene.in_set("kept", "completed", &now).await;
    scene.hash("a", "aggregating", &[("group", "g")], message("a")).await;
    for args in [
        &["ZADD", "asynq:{q}:g:g", "1", "a"][..],
        &["SADD", "asynq:{q}:groups", "g"],
        &["ZADD", "asynq:{q}:g:g:uuid", "1", "b"],
        &["ZADD", "asynq:{q}:aggregation_sets", &now, "asynq:{q}:g:g:uuid"],
        &["SET", "asynq:{q}:paused", &now],
        &["SET", "asynq:{q}:processed", "7"],
        &["SET", "asynq:{q}:failed", "2"],
        &["SET", LOCK, "gone", "EX", "3600"],
        &["SREM", "asynq:queues", "q"],
    ] {
        scene.redis(args).await;
    }
    let left = scene.store.remove_queue(q(), false).await;
    assert!(matches!(left, Err(Error::NotEmpty { tasks: 3, active: 0, .. })), "{left:?}");
    assert_eq!(scene.store.remove_queue(q(), true).await, Ok(3));
    scene.store.reconcile(vec![q()]).await.unwrap();
    assert_eq!(scene.keys().await, [""; 0]);
}

#[tokio::test]
async fn since_when_a_task_waits_is_known_after_each_way_back() {
    let scene = Scene::new().await;
    scene.enqueue(task("a")).await.unwrap();
    let oldest = async || scene.store.queue_stats(vec![q()]).await.unwrap().remove(0).oldest_pending;
    let first = oldest().await;
    assert_eq!(first, Some(scene.clock.now()));
    let claimed = scene.claim(1).await.remove(0);
    scene.clock.advance(MINUTE);
    scene.end(&claimed, Settlement::Release).await;
    assert_eq!(oldest().await, first, "it had waited before");
    scene.store.archive(key("a"), "by hand".into()).await.unwrap();
    scene.store.run_now(key("a")).await.unwrap();
    assert_eq!(oldest().await, Some(scene.clock.now()));

    // A peer in Go gives back or runs without writing it: nobody knows, and nothing else is wrong.
    scene.redis(&["HDEL", "asynq:{q}:t:a", "pending_since"]).await;
    assert_eq!((oldest().await, scene.get("a").await.unwrap().pending_since), (None, None));
    assert_eq!(ids(&scene.claim(1).await), ["a"]);
}

#[tokio::test]
async fn a_producer_of_ours_registers_a_queue_that_another_removed() {
    let scene = Scene::new().await;
    scene.enqueue(task("a")).await.unwrap();
    scene.redis(&["DEL", "asynq:{q}:pending", "asynq:{q}:t:a"]).await;
    scene.redis(&["SREM", "asynq:queues", "q"]).await;
    assert!(scene.store.queues().await.unwrap().is_empty());
    scene.enqueue(task("b")).await.unwrap();
    assert_eq!(scene.store.queues().await.unwrap(), [q()]);
}

/// A field of ours that a Go worker could not know of counts only where what it wrote agrees.
#[tokio::test]
async fn what_we_wrote_beside_a_task_gives_way_to_what_go_did_later() {
    let scene = Scene::new().await;
    let mut sent = task("a");
    sent.subjects = vec![Subject::new("knowledge", "kn_1")];
    scene.enqueue(sent).await.unwrap();
    let held = scene.claim(1).await.remove(0);
    // Go's recoverer took it for dead: it wrote a failure and moved it, and our fields stayed.
    scene.redis(&["LREM", "asynq:{q}:active", "0", "a"]).await;
    scene.redis(&["ZREM", "asynq:{q}:lease", "a"]).await;
    scene.redis(&["ZADD", "asynq:{q}:retry", &scene.secs(), "a"]).await;
    let Reply::Bytes(bytes) = scene.redis(&["HGET", "asynq:{q}:t:a", "msg"]).await else {
        panic!("no message")
    };
    let mut message = TaskMessage::from_bytes(&bytes).unwrap();
    (message.retried, message.error_msg) = (1, "asynq: task lease expired".to_owned());
    message.last_failed_at = scene.clock.now().as_secs();
    let bytes = message.to_bytes();
    scene.redis(&[&b"HSET"[..], b"asynq:{q}:t:a", b"msg", &bytes, b"state", b"retry"]).await;

    let lost = scene.store.settle(vec![(Held::of(&held).unwrap(), done())]).await.unwrap().remove(0);
    assert_eq!(lost, Err(Error::LeaseLost { key: key("a") }));
    assert!(scene.store.store_result(Held::of(&held).unwrap(), "late".into()).await.is_err());
    let shown = scene.get("a").await.unwrap();
    assert_eq!((shown.state, shown.retried, shown.lease_until), (State::Retry, 1, None));
    assert_eq!(shown.failed.unwrap().error.as_ref(), "asynq: task lease expired");
    scene.store.promote_due(vec![q()], 10).await.unwrap();
    let again = scene.claim(1).await.remove(0);
    assert_ne!(again.token, held.token);
    scene.end(&again, done()).await;
    let found = scene.store.find(Find::Subject(Subject::new("knowledge", "kn_1")), 10).await.unwrap();
    assert!(found.tasks.is_empty() && found.complete);
}
