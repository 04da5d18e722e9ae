//! A Go server beside ours, as far as its record tells of it.

use std::time::Duration;

use poolwright_broker::{ServerBeat, ServerId, Upkeep};
use poolwright_conformance::Harness;
use poolwright_core::Timestamp;
use poolwright_store_redis::keys;
use poolwright_store_redis::schedulers::wire_time;
use poolwright_store_redis::wire::{QueueWeight, ServerInfo, Wire};

use super::RedisHarness;

/// A Go server works on the queue `q`, and a heartbeat of ours has seen it.
pub(crate) async fn lives(harness: &RedisHarness) {
    let info = ServerInfo {
        host: "h".into(),
        pid: 7,
        server_id: "4d1c2a5e-0c55-4a3e-9d0f-2f6f1e6f9b11".into(),
        concurrency: 4,
        queues: vec![QueueWeight { queue: Some("q".into()), weight: Some(1) }],
        status: "active".into(),
        start_time: Some(wire_time(harness.now())),
        ..ServerInfo::default()
    };
    let record = keys::server("h", 7, &info.server_id);
    let bytes = info.to_bytes();
    let set: [&[u8]; 3] = [b"SET", record.as_bytes(), &bytes];
    harness.servers().command(&record, &set).await;
    let till = (harness.now().as_secs() + 1_000).to_string();
    harness.servers().command(keys::SERVERS, &["ZADD", keys::SERVERS, &till, &record]).await;
    let beat = ServerBeat {
        id: ServerId("h:1:a".into()),
        host: "h".into(),
        pid: 1,
        started_at: Timestamp::EPOCH,
        beat_at: Timestamp::EPOCH,
        stopping: false,
        pools: Vec::new(),
        tasks: Vec::new(),
    };
    harness.store().beat(beat, Duration::from_secs(900)).await.unwrap();
}
