//! The same on a cluster and behind sentinels: both sides find each other's queues, wherever they lie.

use std::sync::Arc;

use poolwright_broker::{
    Cancel, Dispatch, Held, Inspect, PoolBeat, ServerBeat, ServerId, Signal, Submit, Upkeep, WeightedQueue,
};
use poolwright_core::{PoolName, Timestamp};
use poolwright_store_redis::{RedisOptions, RedisStore};
use poolwright_testbed::{RedisCluster, RedisSentinels};
use serde_json::json;

use crate::both::{MINUTE, claim, done, ids, key, queue, task};
use crate::go::Go;

/// Queues that lie on different nodes of a cluster.
const QUEUES: [&str; 4] = ["default", "low", "q", "größe"];

async fn open(url: &str) -> Option<(Arc<RedisStore>, Go)> {
    let go = Go::on(url.to_owned())?;
    Some((RedisStore::open(RedisOptions::from_url(url).unwrap()).await.unwrap(), go))
}

/// Each side enqueues, the other works, and asynq's inspector sees queues, tasks and servers of both.
async fn each_side_does_what_the_other_sent(store: &RedisStore, go: &Go) {
    let theirs =
        QUEUES.map(|of| json!({"type": "t", "queue": of, "id": format!("go-{of}"), "unique_ms": 60_000}));
    go.enqueue(&theirs).await;
    let mut inspector = go.inspector();
    for of in QUEUES {
        let claimed = claim(store, of, 5, MINUTE).await;
        assert_eq!(ids(&claimed), [format!("go-{of}")]);
        store.settle(vec![(Held::of(&claimed[0]).unwrap(), done())]).await.unwrap().remove(0).unwrap();
        assert_eq!(inspector.state(of, &format!("go-{of}")).await, "task_not_found");
    }

    let ours = QUEUES.map(|of| {
        let mut task = task(&format!("ours-{of}"), r#"{"result":"r"}"#);
        task.key = key(of, task.key.id.as_str());
        task.retention = MINUTE;
        task
    });
    for outcome in store.enqueue(ours.to_vec()).await.unwrap() {
        outcome.unwrap();
    }
    store.beat(beat(), MINUTE).await.unwrap();
    let worker = go.worker(&["--queues", &QUEUES.join(","), "--task-check-interval", "20ms"]).await;
    for of in QUEUES {
        let id = format!("ours-{of}");
        inspector.until_state(of, &id, "completed").await;
        let result = store.get(key(of, &id)).await.unwrap().unwrap().result;
        assert_eq!(result.as_deref(), Some(&b"r"[..]));
    }
    let servers = inspector.get(json!({"op": "servers"})).await;
    assert_eq!(servers.as_array().unwrap().len(), 2, "{servers}");
    assert_eq!(store.servers().await.unwrap().len(), 2);
    worker.stop().await;
    let mut sorted = QUEUES;
    sorted.sort_unstable();
    assert_eq!(inspector.get(json!({"op": "queues"})).await, json!(sorted));
    assert_eq!(store.queues().await.unwrap(), sorted.map(queue));
    hears(store, go).await;
}

/// A cancellation crosses over.
async fn hears(store: &RedisStore, go: &Go) {
    let mut feed = store.subscribe().await.unwrap();
    go.enqueue(&[json!({"type": "t", "queue": "q", "id": "running"})]).await;
    assert_eq!(claim(store, "q", 1, MINUTE).await.len(), 1);
    go.inspector().get(json!({"op": "cancel", "id": "running"})).await;
    assert_eq!(feed.next().await, Some(Cancel { key: key("q", "running") }));
}

pub(crate) fn beat() -> ServerBeat {
    let queues = vec![WeightedQueue { queue: queue("q"), weight: 1 }];
    ServerBeat {
        id: ServerId("host1:4242:abc".to_owned()),
        host: "host1".to_owned(),
        pid: 4_242,
        started_at: Timestamp::EPOCH,
        beat_at: Timestamp::EPOCH,
        stopping: false,
        pools: vec![PoolBeat {
            pool: PoolName::new("core").unwrap(),
            workers: 8,
            busy: 0,
            stalled: 0,
            queues,
        }],
        tasks: Vec::new(),
    }
}

#[tokio::test]
async fn on_a_cluster() {
    if crate::go::program().is_none() {
        return;
    }
    let cluster = RedisCluster::start().await.unwrap();
    let nodes: Vec<_> = cluster.nodes().iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
    let Some((store, go)) = open(&format!("redis-cluster://{}", nodes.join(","))).await else { return };
    each_side_does_what_the_other_sent(&store, &go).await;
}

#[tokio::test]
async fn behind_sentinels() {
    if crate::go::program().is_none() {
        return;
    }
    let sentinels = RedisSentinels::start().await.unwrap();
    let places: Vec<_> = sentinels.addresses().iter().map(ToString::to_string).collect();
    let url = format!("redis-sentinel://{}/0?master={}", places.join(","), sentinels.master_name());
    let Some((store, go)) = open(&url).await else { return };
    each_side_does_what_the_other_sent(&store, &go).await;
}
