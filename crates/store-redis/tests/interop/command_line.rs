//! asynq's own command line on what our store writes without a worker: what schedulers tell, and all that lies on a cluster.
//!
//! What it shows and does of a whole worker is told by the stories, `tests/stories/command_line.rs`.

use std::time::Duration;

use poolwright_broker::{Cancel, Inspect, Signal, Submit, Upkeep};
use poolwright_core::{Clock, State, clock::SystemClock};
use poolwright_store_redis::schedulers::wire_time;
use poolwright_store_redis::wire::{NEVER, SchedulerEnqueueEvent, SchedulerEntry};
use poolwright_store_redis::{RedisOptions, RedisStore};
use poolwright_testbed::{RedisCluster, RedisServer};

use crate::asynq::{self, Asynq, row, seconds};
use crate::both::{self, MINUTE, key, queue, task};

const SCHEDULER: &str = "harbour:4242:7837f142-6337-4217-9276-8f27281b67d1";

/// An entry with every option that the command line takes apart, and one that ran some minutes ago.
fn entries() -> [SchedulerEntry; 2] {
    let now = SystemClock.now();
    let entry = |id: &str, spec: &str, task_type: &str| SchedulerEntry {
        id: id.to_owned(),
        spec: spec.to_owned(),
        task_type: task_type.to_owned(),
        task_payload: r#"{"of":"the tide"}"#.into(),
        enqueue_options: Vec::new(),
        next_enqueue_time: Some(wire_time(now + 10 * MINUTE)),
        prev_enqueue_time: Some(NEVER),
    };
    let options = [
        r#"Queue("low")"#,
        "MaxRetry(3)",
        "Timeout(1m30s)",
        "Deadline(Tue Dec  1 12:38:00 UTC 2026)",
        "Unique(1h0m0s)",
        "Retention(24h0m0s)",
    ];
    let mut fresh = entry("e1", "0 * * * *", "tide:measure");
    fresh.enqueue_options = options.map(str::to_owned).to_vec();
    let mut ran = entry("e2", "@every 10m", "tide:report");
    ran.task_payload = "höchstens".into();
    ran.prev_enqueue_time = Some(wire_time(now - 3 * MINUTE));
    [fresh, ran]
}

#[tokio::test]
async fn it_shows_the_entries_of_our_schedulers_until_they_end() {
    if asynq::program().is_none() {
        return;
    }
    let server = RedisServer::start().await.unwrap();
    let (Some(asynq), store) = (Asynq::on(&server), both::open(&server).await) else { return };
    let told = entries();
    store.beat_scheduler(SCHEDULER, &told, MINUTE).await.unwrap();
    let known = store.schedulers().await.unwrap().remove(0).entries;
    assert_eq!(known, told);
    let from = SystemClock.now().as_secs();
    let mut shown = asynq.rows("cron ls").await;
    let to = SystemClock.now().as_secs();
    let is_near = |seconds: i64, end: i64| (end - to - 1..=end - from + 1).contains(&seconds);
    assert_eq!(shown.len(), 2, "in the order of their texts: {shown:?}");
    for (row, entry) in shown.iter_mut().zip(&known) {
        let next = entry.next_enqueue_time.unwrap().seconds;
        assert!(is_near(seconds(&row.remove("Next").unwrap()), next), "{row:?}");
        match (&*row.remove("Prev").unwrap(), entry.prev_enqueue_time) {
            ("N/A", Some(NEVER)) => assert_eq!(entry.id, "e1"),
            (ago, prev) => assert!(is_near(-seconds(ago), prev.unwrap().seconds), "{ago}"),
        }
    }
    let options = format!("[{}]", known[0].enqueue_options.join(" "));
    let [fresh, ran] = [
        ["e1", "0 * * * *", "tide:measure", r#"{"of":"the tide"}"#, &options],
        ["e2", "@every 10m", "tide:report", "höchstens", "[]"],
    ]
    .map(|[id, spec, of, payload, options]| {
        row([("EntryID", id), ("Spec", spec), ("Type", of), ("Payload", payload), ("Options", options)])
    });
    assert_eq!(shown, [fresh, ran]);

    store.retire_scheduler(SCHEDULER, &told).await.unwrap();
    assert!(asynq.say("cron ls").await.tables().is_empty());
}

#[tokio::test]
async fn it_shows_when_our_schedulers_enqueued() {
    if asynq::program().is_none() {
        return;
    }
    let server = RedisServer::start().await.unwrap();
    let (Some(asynq), store) = (Asynq::on(&server), both::open(&server).await) else { return };
    store.beat_scheduler(SCHEDULER, &entries(), MINUTE).await.unwrap();
    for at in 0..3 {
        let enqueue_time = Some(wire_time(SystemClock.now() - Duration::from_secs(600 * (3 - at))));
        let event = SchedulerEnqueueEvent { task_id: format!("t{at}"), enqueue_time };
        store.record_enqueue_event("e2", &event).await.unwrap();
    }
    let events = store.enqueue_events("e2", 10).await.unwrap();
    assert_eq!(events.len(), 3);
    let shown = |events: &[SchedulerEnqueueEvent]| {
        let rows = events.iter().map(|event| {
            let at = event.enqueue_time.unwrap().seconds;
            let at = poolwright_core::Timestamp::from_secs(at).to_string();
            (event.task_id.clone(), at.split('.').next().unwrap().replace('T', " "))
        });
        rows.collect::<Vec<_>>()
    };
    let told = async |command: &str| {
        let rows = asynq.rows(command).await;
        // To the second: behind it stand a fraction and the zone.
        rows.iter().map(|row| (row["TaskID"].clone(), row["EnqueuedAt"][..19].to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(told("cron history e2").await, shown(&events));
    assert_eq!(told("cron history e2 --size 2 --page 2").await, shown(&events[2..]));
    assert!(asynq.say("cron history e1").await.tables().is_empty(), "the other one never did");
}

#[tokio::test]
async fn on_a_cluster_it_finds_our_queues_and_steers_them() {
    if asynq::program().is_none() {
        return;
    }
    let cluster = RedisCluster::start().await.unwrap();
    let Some(asynq) = Asynq::on_cluster(&cluster) else { return };
    let nodes: Vec<_> = cluster.nodes().iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
    let url = format!("redis-cluster://{}", nodes.join(","));
    let store = RedisStore::open(RedisOptions::from_url(&url).unwrap()).await.unwrap();
    let queues = ["default", "low", "q"];
    for of in queues {
        let mut task = task("a", "of the cluster");
        task.key = key(of, "a");
        store.enqueue(vec![task]).await.unwrap().remove(0).unwrap();
    }
    let mut shown = asynq.rows("queue ls").await;
    shown.sort_by_key(|row| row["Queue"].clone());
    for (row, of) in shown.iter().zip(queues) {
        let slot =
            cluster.nodes()[0].command(&["CLUSTER", "KEYSLOT", &format!("asynq:{{{of}}}:pending")]).await;
        let slot = slot.unwrap().integer().unwrap();
        assert_eq!((&*row["Queue"], &row["Cluster KeySlot"]), (of, &slot.to_string()));
        let payload = asynq.rows(&format!("task ls --queue {of} --state pending")).await;
        assert_eq!(payload, [row_of_a()]);
    }
    assert_eq!(shown.len(), queues.len());
    let sums = asynq.say("stats").await.tables().remove(0);
    assert_eq!(sums[0]["pending"], "3");
    asynq.say("queue pause low").await;
    let stats = store.queue_stats(vec![queue("low")]).await.unwrap().remove(0);
    assert!(stats.paused.is_some());
    asynq.say("task archive --queue low --id a").await;
    assert_eq!(store.get(key("low", "a")).await.unwrap().unwrap().state, State::Archived);

    let mut feed = store.subscribe().await.unwrap();
    assert_eq!(both::claim(&*store, "q", 1, MINUTE).await.len(), 1);
    asynq.say("task cancel a").await;
    assert_eq!(feed.next().await, Some(Cancel { key: key("q", "a") }));
    store.beat(crate::elsewhere::beat(), MINUTE).await.unwrap();
    let servers = asynq.rows("server ls").await;
    assert_eq!((&*servers[0]["Active Workers"], &*servers[0]["Queues"]), ("0/8", "q:1"));
}

fn row_of_a() -> asynq::Row {
    row([("ID", "a"), ("Type", "t"), ("Payload", "of the cluster")])
}
