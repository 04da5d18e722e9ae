//! What a side left behind, the other goes on with: workers that died or stop, a lease that expired, a queue that was removed
//! while a producer remembers it.

use std::sync::Arc;
use std::time::Duration;

use poolwright_broker::{Dispatch, Error, Extension, Held, Inspect, Upkeep};
use poolwright_core::clock::{ManualClock, SystemClock};
use poolwright_core::{Chance, Charge, Class, Clock, Settlement, State, TaskRecord, Timestamp, UniqueLock};
use poolwright_store_redis::{RedisOptions, RedisStore};
use serde_json::json;

use crate::both::{self, Both, MINUTE, done, ids, key, queue, task};

const EAGER: [&str; 6] =
    ["--queues", "q", "--task-check-interval", "20ms", "--delayed-check-interval", "50ms"];

/// Another store on the server, with a clock that a test moves: it begins a little ahead of all others.
async fn with_clock(both: &Both) -> (Arc<RedisStore>, ManualClock) {
    let clock = ManualClock::at(SystemClock.now() + Duration::from_secs(1));
    let options = RedisOptions::from_url(&both.server.unix_url()).unwrap();
    let rules = Arc::new(clock.clone());
    let store = RedisStore::open_with_clock(options, rules, Chance::from_entropy()).await.unwrap();
    (store, clock)
}

async fn take_over(store: &RedisStore) -> Vec<TaskRecord> {
    store.take_over(both::all_of(queue("q"))).await.unwrap()
}

fn crashed() -> Settlement {
    let error = "its worker is gone".to_owned();
    Settlement::Retry { after: Duration::ZERO, error, class: Class::Crashed, charge: Charge::Crash }
}

#[tokio::test]
async fn the_task_of_a_killed_go_worker_is_ours_once_its_lease_stood_still() {
    let Some(both) = Both::start().await else { return };
    both.go.enqueue(&[json!({"type": "t", "queue": "q", "id": "a", "payload_json": {"do": "wait"}})]).await;
    let worker = both.go.worker(&EAGER).await;
    worker.event("start", "a").await;
    worker.kill().await;
    let (store, clock) = with_clock(&both).await;
    assert_eq!(take_over(&store).await, [], "its lease lasts");
    clock.advance(Duration::from_secs(30));
    assert_eq!(take_over(&store).await, [], "it has expired, and may only be late");
    clock.advance(Duration::from_secs(29));
    assert_eq!(take_over(&store).await, []);
    clock.advance(Duration::from_secs(1));
    let taken = take_over(&store).await.remove(0);
    assert_eq!((taken.key.clone(), taken.state, taken.retried), (key("q", "a"), State::Active, 0));
    let held = Held::of(&taken).unwrap();
    store.settle(vec![(held, crashed())]).await.unwrap().remove(0).unwrap();
    let again = both.claim_one("a").await;
    assert_eq!((again.retried, again.crashes), (0, 1), "it costs no retry");
    both.end(&again, done()).await;
    assert!(!both.has("asynq:{q}:active").await && !both.has("asynq:{q}:lease").await);
}

/// A Go server takes over whatever its own clock shows half a minute past.
#[tokio::test]
async fn our_lease_lasts_as_long_as_theirs_where_go_servers_work_too() {
    const LEASE: Duration = Duration::from_secs(10);
    let Some(both) = Both::start().await else { return };
    let (store, clock) = with_clock(&both).await;
    let beat = async || store.beat(crate::elsewhere::beat(), MINUTE).await.unwrap();
    let score = async |id: &str| both.redis(&["ZSCORE", "asynq:{q}:lease", id]).await.integer();
    let end_of = |task: &TaskRecord| task.lease_until.unwrap();
    let second_of = |time: Timestamp| Some((time + Duration::from_micros(999_999)).as_secs());
    both.send(vec![task("alone", "")]).await;
    let alone = both::claim(&*store, "q", 1, LEASE).await.remove(0);
    assert_eq!(end_of(&alone), clock.now() + LEASE);

    let worker = both.go.worker(&[&EAGER[..], &["--concurrency", "1"]].concat()).await;
    both.go
        .enqueue(&[json!({"type": "t", "queue": "q", "id": "theirs", "payload_json": {"do": "wait"}})])
        .await;
    worker.event("start", "theirs").await;
    beat().await;
    both.send(vec![task("beside", "")]).await;
    let beside = both::claim(&*store, "q", 1, LEASE).await.remove(0);
    assert_eq!(end_of(&beside), clock.now() + 3 * LEASE);
    assert_eq!(score("beside").await, second_of(end_of(&beside)));
    clock.advance(LEASE / 2);
    let held = [&alone, &beside].map(|task| Held::of(task).unwrap());
    let till = clock.now() + 3 * LEASE;
    assert_eq!(store.extend(held.to_vec(), LEASE).await.unwrap(), [Extension::Kept(till); 2]);
    assert_eq!(score("alone").await, second_of(till));
    worker.stop().await;
}

/// A worker in Go whose clock is far behind ours: its lease looks expired at all times, and it moves.
#[tokio::test]
async fn a_go_worker_that_lives_keeps_its_task_whatever_its_clock_shows() {
    let Some(both) = Both::start().await else { return };
    both.send(vec![task("a", r#"{"do":"wait","result":"r"}"#)]).await;
    let mut worker = both.go.worker(&EAGER).await;
    worker.event("start", "a").await;
    let (store, clock) = with_clock(&both).await;
    clock.advance(60 * MINUTE);
    let lease = async || both.redis(&["ZSCORE", "asynq:{q}:lease", "a"]).await.integer();
    for _ in 0..2 {
        let before = lease().await;
        assert_eq!(take_over(&store).await, []);
        both::until("a lease that moves", async || (lease().await != before).then_some(())).await;
        clock.advance(Duration::from_secs(29));
        assert_eq!(take_over(&store).await, []);
        clock.advance(Duration::from_secs(29));
        assert_eq!(take_over(&store).await, [], "it moved within the last half minute");
    }
    worker.say(json!({"release": "a"})).await;
    assert_eq!(worker.event("end", "a").await["outcome"], "ok");
    both.go.inspector().until_state("q", "a", "task_not_found").await;
    assert_eq!(worker.count("start", "a"), 1);
    worker.stop().await;
}

#[tokio::test]
async fn gos_recoverer_saves_what_we_left_and_our_late_word_counts_no_more() {
    let Some(both) = Both::start().await else { return };
    let mut kept = task("a", "");
    kept.retention = MINUTE;
    both.send(vec![kept]).await;
    let held = both.claim_one("a").await;
    // Half a minute passes over the lease that we let expire: Go's recoverer looks at the score alone.
    let past = (SystemClock.now().as_secs() - 31).to_string();
    both.redis(&["ZADD", "asynq:{q}:lease", &past, "a"]).await;
    let args = [&EAGER[..], &["--retry-delay", "1h"]].concat();
    let worker = both.go.worker(&args).await;
    let mut inspector = both.go.inspector();
    inspector.until_state("q", "a", "retry").await;
    let lost = Err(Error::LeaseLost { key: key("q", "a") });
    assert_eq!(both.settle(&held, done()).await, lost);
    let back = both.task("a").await;
    assert_eq!((back.retried, back.failed.unwrap().error.as_ref()), (1, "asynq: task lease expired"));
    assert_eq!((back.lease_until, back.crashes), (None, 0));
    inspector.act("run", "q", "a").await;
    inspector.until_state("q", "a", "completed").await;
    assert_eq!(both.settle(&held, done()).await, lost);
    assert_eq!(worker.count("start", "a"), 1);
    worker.stop().await;
    let completed = both.task("a").await;
    assert!(completed.completed_at.is_some() && completed.expires_at.is_some());
}

/// A worker in Go that stops puts its task in front, and forgets since when it waited.
#[tokio::test]
async fn what_go_gives_back_at_its_stop_is_ours_first() {
    let Some(both) = Both::start().await else { return };
    both.send(vec![task("a", r#"{"do":"wait","deaf":true}"#)]).await;
    let worker = both.go.worker(&[&EAGER[..], &["--shutdown-timeout", "10ms"]].concat()).await;
    worker.event("start", "a").await;
    both.store.pause(queue("q"), "so that it takes no more".into()).await.unwrap();
    both.send(vec![task("b", "")]).await;
    worker.stop().await;
    let back = both.task("a").await;
    assert_eq!((back.state, back.pending_since, back.retried), (State::Pending, None, 0));
    both.store.resume(queue("q")).await.unwrap();
    assert_eq!(ids(&both.claim("q", 2).await), ["a", "b"]);
}

/// The other way round: what we give back is in front, and Go takes it next.
#[tokio::test]
async fn what_we_give_back_is_next_for_go() {
    let Some(both) = Both::start().await else { return };
    both.send(["a", "b", "c"].map(|id| task(id, "")).to_vec()).await;
    let held = both.claim("q", 2).await;
    for task in &held {
        both.end(task, Settlement::Release).await;
    }
    assert_eq!(both.go.inspector().ids("q", "pending").await, ["a", "b", "c"]);
    let worker = both.go.worker(&[&EAGER[..], &["--concurrency", "1"]].concat()).await;
    worker.event("end", "c").await;
    let started = worker.heard.look(|lines| {
        let starts = lines.iter().filter(|line| line["event"] == "start");
        starts.map(|line| line["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    });
    assert_eq!(started, ["a", "b", "c"]);
    worker.stop().await;
}

/// A producer in Go registers a queue once in its life; who removes the queue meanwhile makes its tasks invisible to screens, but
/// not to workers, and the first of ours who enqueues registers it again.
#[tokio::test]
async fn tasks_of_a_producer_that_remembers_a_removed_queue_are_done_all_the_same() {
    let Some(both) = Both::start().await else { return };
    let mut producer = both.go.talk("enqueue");
    let line = |id: &str| json!({"type": "t", "queue": "q", "id": id});
    producer.ask(line("a")).await;
    assert_eq!(both.store.remove_queue(queue("q"), true).await, Ok(1));
    assert_eq!(both.keys().await, [""; 0]);
    producer.ask(line("b")).await;
    assert!(both.store.queues().await.unwrap().is_empty());
    let claimed = both.claim_one("b").await;
    both.end(&claimed, done()).await;
    producer.ask(line("c")).await;
    both.send(vec![task("d", "")]).await;
    assert_eq!(both.go.inspector().ids("q", "pending").await, ["c", "d"]);
}

/// asynq takes the lock first, and leaves it when the id is taken.
#[tokio::test]
async fn a_lock_that_go_leaks_on_an_id_conflict_names_a_task_that_has_none() {
    let Some(both) = Both::start().await else { return };
    let tasks = [
        json!({"type": "t", "queue": "q", "id": "a", "payload": "plain"}),
        json!({"type": "t", "queue": "q", "id": "a", "payload": "hello", "unique_ms": 600_000}),
    ];
    let answers = both.go.run("enqueue", &[], &tasks).await;
    assert_eq!(answers[1]["kind"], "conflict");
    const LEAKED: &str = "asynq:{q}:unique:t:5d41402abc4b2a76b9719d911017c592";
    assert!(both.has(LEAKED).await);
    assert!(both.task("a").await.unique.is_none(), "the record knows what it holds");
    let mut ours = task("b", "hello");
    ours.unique = Some(UniqueLock::new("t:5d41402abc4b2a76b9719d911017c592", MINUTE));
    both.send(vec![ours]).await;
    assert_eq!(both.redis(&["GET", LEAKED]).await, "b", "it was free for whoever comes");
    // And for Go it is one that is held.
    let again = json!({"type": "t", "queue": "q", "id": "c", "payload": "hello", "unique_ms": 600_000});
    assert_eq!(both.go.run("enqueue", &[], &[again]).await[0]["kind"], "duplicate");
}
