//! What only asynq has: groups, and what schedulers tell of themselves.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod stage;

use std::time::Duration;

use poolwright_broker::{
    Dispatch, Held, Inspect, PoolBeat, RunningTask, ServerBeat, ServerId, Submit, Upkeep, WeightedQueue,
};
use poolwright_conformance::{Harness, builders};
use poolwright_core::{
    Charge, Class, PoolName, QueueName, State, TaskId, TaskKey, TaskRecord, Timestamp, TypeName,
};
use poolwright_store_redis::keys::{self, Keys};
use poolwright_store_redis::schedulers::wire_time;
use poolwright_store_redis::wire::{SchedulerEnqueueEvent, SchedulerEntry, TaskMessage, Wire};
use poolwright_testbed::Reply;
use stage::RedisHarness;

fn queue() -> QueueName {
    QueueName::new("q").unwrap()
}

/// Puts a task into a group as asynq does; into a set that is being put together when one is named.
async fn add_to_group(harness: &RedisHarness, id: &str, group: &str, set: Option<&str>) {
    let keys = Keys::of(&queue());
    let message = TaskMessage {
        task_type: "t".into(),
        id: id.into(),
        queue: "q".into(),
        retry: 25,
        timeout: 1_800,
        group_key: group.into(),
        ..TaskMessage::default()
    };
    let hash = keys.task(&TaskId::new(id).unwrap());
    let message = message.to_bytes();
    let fields: [&[u8]; 8] =
        [b"HSET", hash.as_bytes(), b"msg", &message, b"state", b"aggregating", b"group", group.as_bytes()];
    let servers = harness.servers();
    servers.command(&hash, &fields).await;
    servers.command(&hash, &["SADD", keys::QUEUES, "q"]).await;
    let zset = set.map_or_else(|| keys.group(group), |set| keys.aggregation_set(group, set));
    servers.command(&zset, &["ZADD", &zset, "1900000000", id]).await;
    match set {
        None => drop(servers.command(&zset, &["SADD", &keys.groups(), group]).await),
        Some(_) => {
            let deadline = (harness.now().as_secs() + 120).to_string();
            servers.command(&zset, &["ZADD", &keys.aggregation_sets(), &deadline, &zset]).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_of_a_group_are_listed_run_and_deleted() {
    let harness = RedisHarness::new(1).await;
    for id in ["a", "b", "c"] {
        add_to_group(&harness, id, "g:1", None).await;
    }
    let store = harness.store();
    let groups = store.groups(&queue()).await.unwrap();
    assert_eq!(
        groups.iter().map(|group| (group.name.as_str(), group.waiting)).collect::<Vec<_>>(),
        [("g:1", 3)]
    );
    let tasks = store.tasks_of_group(&queue(), "g:1", 2).await.unwrap();
    assert_eq!(tasks.iter().map(|task| task.key.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);

    let key = |id: &str| TaskKey::new(queue(), TaskId::new(id).unwrap());
    store.run_now(key("a")).await.unwrap();
    store.archive(key("b"), "no".into()).await.unwrap();
    assert_eq!(store.get(key("a")).await.unwrap().map(|task| task.state), Some(State::Pending));
    store.delete(key("c")).await.unwrap();
    assert!(store.groups(&queue()).await.unwrap().is_empty(), "a group without tasks is gone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_whose_server_died_goes_back_to_its_group_which_is_seen_again() {
    let harness = RedisHarness::new(1).await;
    add_to_group(&harness, "a", "g:1", Some("5f0c")).await;
    let store = harness.store();
    store.promote_due(vec![queue()], 10).await.unwrap();
    assert!(store.groups(&queue()).await.unwrap().is_empty(), "its server may still be at it");
    harness.elapse(Duration::from_secs(121)).await;
    store.promote_due(vec![queue()], 10).await.unwrap();
    assert_eq!(store.groups(&queue()).await.unwrap()[0].waiting, 1);
    assert!(!harness.servers().keys().await.iter().any(|key| key.contains("5f0c")));
}

fn entry(id: &str, next: Timestamp) -> SchedulerEntry {
    SchedulerEntry {
        id: id.into(),
        spec: "@every 1m".into(),
        task_type: "t".into(),
        next_enqueue_time: Some(wire_time(next)),
        prev_enqueue_time: Some(poolwright_store_redis::wire::NEVER),
        ..SchedulerEntry::default()
    }
}

/// A heartbeat of a process whose one pool runs this many tasks.
fn heartbeat(running: usize) -> ServerBeat {
    let pool = PoolName::new("core").unwrap();
    let task = |number| RunningTask {
        key: TaskKey::new(queue(), TaskId::new(format!("t{number}")).unwrap()),
        task_type: TypeName::new("t").unwrap(),
        pool: pool.clone(),
        started_at: Timestamp::EPOCH,
        stalled: false,
    };
    let count = u32::try_from(running).unwrap();
    let queues = vec![WeightedQueue { queue: queue(), weight: 1 }];
    ServerBeat {
        id: ServerId("h:7:abc".to_owned()),
        host: "h".to_owned(),
        pid: 7,
        started_at: Timestamp::EPOCH,
        beat_at: Timestamp::EPOCH,
        stopping: false,
        pools: vec![PoolBeat { pool: pool.clone(), workers: count, busy: count, stalled: 0, queues }],
        tasks: (0..running).map(task).collect(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heartbeat_shows_all_that_runs_however_much_and_rubbish_beside_it_does_no_harm() {
    let harness = RedisHarness::new(1).await;
    let store = harness.store();
    let servers = harness.servers();
    // Not text, not a string, not there.
    servers.command(keys::SERVERS, &["SET", "asynq:servers:{a:1:x}", "rubbish"]).await;
    servers.command(keys::SERVERS, &["LPUSH", "asynq:servers:{b:1:x}", "rubbish"]).await;
    for name in ["a", "b", "c"] {
        let member = format!("asynq:servers:{{{name}:1:x}}");
        servers.command(keys::SERVERS, &["ZADD", keys::SERVERS, "9000000000", &member]).await;
    }
    let workers = keys::workers("h", 7, "abc/core");
    for running in [2_345, 1, 0] {
        store.beat(heartbeat(running), Duration::from_secs(60)).await.unwrap();
        let shown = servers.command(&workers, &["HLEN", &workers]).await;
        assert_eq!(shown, Reply::Integer(i64::try_from(running).unwrap()));
    }
    let seen = store.servers().await.unwrap();
    assert_eq!((seen.len(), seen[0].id.0.as_str()), (1, "h:7:abc"));
    let record = keys::server("h", 7, "abc/core");
    let record = servers.command(&record, &["EXISTS", &record]).await;
    assert_eq!(record, Reply::Integer(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scheduler_is_shown_while_it_lives_with_its_entries_in_order() {
    let harness = RedisHarness::new(1).await;
    let store = harness.store();
    let entries = [entry("e1", harness.now()), entry("e2", harness.now())];
    store.beat_scheduler("h:1:u", &entries, Duration::from_secs(20)).await.unwrap();
    let seen = store.schedulers().await.unwrap();
    assert_eq!((seen.len(), seen[0].id.as_str(), seen[0].entries.as_slice()), (1, "h:1:u", &entries[..]));
    store.beat_scheduler("h:1:u", &entries[..1], Duration::from_secs(20)).await.unwrap();
    assert_eq!(store.schedulers().await.unwrap()[0].entries, entries[..1]);
    store.retire_scheduler("h:1:u", &entries).await.unwrap();
    assert!(store.schedulers().await.unwrap().is_empty());
    assert!(harness.servers().keys().await.iter().all(|key| !key.contains("scheduler")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_latest_thousand_enqueues_of_an_entry_are_kept() {
    let harness = RedisHarness::new(1).await;
    let store = harness.store();
    for n in 0..1_005 {
        let time = wire_time(harness.now() + Duration::from_secs(n));
        let event = SchedulerEnqueueEvent { task_id: format!("t{n}"), enqueue_time: Some(time) };
        store.record_enqueue_event("e1", &event).await.unwrap();
    }
    let events = store.enqueue_events("e1", 3).await.unwrap();
    assert_eq!(
        events.iter().map(|event| event.task_id.as_str()).collect::<Vec<_>>(),
        ["t1004", "t1003", "t1002"]
    );
    let history = keys::scheduler_history("e1");
    let kept = harness.servers().command(&history, &["ZCARD", &history]).await;
    assert_eq!(kept.integer(), Some(1_000));
    assert!(store.enqueue_events("e1", 0).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_given_back_for_want_of_a_handler_is_left_to_go_servers_for_a_moment() {
    let harness = RedisHarness::new(1).await;
    let store = harness.store();
    stage::go_server::lives(&harness).await;
    let claimed = async |id: u64, slots: u32| {
        let claims = store.claim(builders::claim(id, slots, &["q"])).await.unwrap().claims;
        claims.into_iter().map(|claim| claim.task).collect::<Vec<_>>()
    };
    let names = |tasks: &[TaskRecord]| tasks.iter().map(|task| task.key.id.to_string()).collect::<Vec<_>>();
    store.enqueue(builders::tasks(["a", "b"])).await.unwrap();
    for task in claimed(1, 2).await {
        let back = builders::retry_as(0, Class::NoHandler, Charge::Nothing);
        store.settle(vec![(Held::of(&task).unwrap(), back)]).await.unwrap().remove(0).unwrap();
    }
    store.enqueue(builders::tasks(["c"])).await.unwrap();
    assert_eq!(names(&claimed(2, 9).await), ["c"], "what stands behind them is not held up");
    assert!(claimed(3, 9).await.is_empty());
    // A Go worker takes from the right end, and finds the first one there.
    let pending = Keys::of(&queue()).pending();
    let front = harness.servers().command(&pending, &["LINDEX", &pending, "-1"]).await;
    assert_eq!(front.text(), Some("a"));
    harness.elapse(Duration::from_secs(3)).await;
    assert_eq!(names(&claimed(4, 9).await), ["a", "b"], "nobody wanted them");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flag_is_not_shown_once_a_go_worker_ended_the_task_and_goes_with_its_letter() {
    let harness = RedisHarness::new(1).await;
    let store = harness.store();
    store.enqueue(builders::tasks(["a"])).await.unwrap();
    let key = builders::key("q", "a");
    store.request_cancel(vec![key.clone()]).await.unwrap();
    let (keys, servers) = (Keys::of(&queue()), harness.servers());
    servers.command(&keys.pending(), &["LREM", &keys.pending(), "0", "a"]).await;
    servers.command(&keys.archived(), &["ZADD", &keys.archived(), "1900000000", "a"]).await;
    let hash = keys.task(&key.id);
    servers.command(&hash, &["HSET", &hash, "state", "archived"]).await;
    assert!(!store.get(key.clone()).await.unwrap().unwrap().cancel_requested);
    let letters = store.unrecorded(vec![queue()], 9).await.unwrap();
    store.mark_recorded(letters.iter().filter_map(Held::of).collect()).await.unwrap();
    store.run_now(key).await.unwrap();
    assert_eq!(store.claim(builders::claim(1, 1, &["q"])).await.unwrap().claims.len(), 1, "it runs");
}
