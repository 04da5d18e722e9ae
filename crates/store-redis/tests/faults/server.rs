//! Servers that fill up, forget, change their role or hold rubbish: the error says what it was, and nothing is lost or stuck.

use std::time::Duration;

use poolwright_broker::{
    Broker, ClaimRequest, Dispatch, Error, Extension, Held, Inspect, PageRequest, Submit, TakeOver, Upkeep,
};
use poolwright_conformance::builders::{
    archive, claim, complete, keep, key, queue, queues, retry, task, tasks,
};
use poolwright_core::{Chance, Settlement, State, TaskRecord, Timestamp};
use poolwright_store_redis::RedisStore;
use poolwright_testbed::RedisServer;

use crate::stage::keyspace::assert_sound;
use crate::{numbers, open, until_answered};

async fn taken(store: &RedisStore, request: ClaimRequest) -> Vec<TaskRecord> {
    store.claim(request).await.unwrap().claims.into_iter().map(|claim| claim.task).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_memory_refuses_new_tasks_and_lets_running_ones_end() {
    let server = RedisServer::start().await.unwrap();
    let store = open(&server.url()).await;
    store.enqueue(tasks((0..20).map(|n| n.to_string()))).await.unwrap();
    let running = taken(&store, claim(1, 10, &["q"])).await;
    server.command(&["CONFIG", "SET", "maxmemory", "1000000"]).await.unwrap();

    let refused = store.enqueue(vec![task("new").unique("lock", 60).subject("doc", "1").build()]).await;
    let Err(Error::Unavailable { why }) = refused else { panic!("expected no room, got {refused:?}") };
    assert!(why.contains("memory"), "{why}");
    assert_eq!(store.get(key("q", "new")).await.unwrap(), None);
    let held: Vec<_> = running.iter().filter_map(Held::of).collect();
    let extended = store.extend(held.clone(), Duration::from_secs(30)).await.unwrap();
    assert!(extended.iter().all(|one| matches!(one, Extension::Kept(_))), "leases go on: {extended:?}");
    let endings = [
        complete(),
        keep(60, b"r"),
        retry(60),
        retry(0),
        archive(),
        Settlement::Discard,
        Settlement::Release,
    ];
    let settlements = held.iter().cloned().zip(endings).collect();
    for outcome in store.settle(settlements).await.unwrap() {
        outcome.unwrap();
    }
    assert_eq!(taken(&store, claim(2, 3, &["q"])).await.len(), 3, "what waits is handed out");

    server.command(&["CONFIG", "SET", "maxmemory", "0"]).await.unwrap();
    store.enqueue(vec![task("new").unique("lock", 60).build()]).await.unwrap().remove(0).unwrap();
    assert_sound(&server, "after the memory was full").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_a_wrong_type_are_refused_by_name_and_cost_nothing() {
    let server = RedisServer::start().await.unwrap();
    let store = open(&server.url()).await;
    store.enqueue(tasks(["a"])).await.unwrap().remove(0).unwrap();
    for wrong in ["active", "lease"] {
        let name = format!("asynq:{{q}}:{wrong}");
        server.command(&["SET", &name, "rubbish"]).await.unwrap();
        let refused = store.claim(claim(1, 1, &["q"])).await;
        assert!(matches!(refused, Err(Error::Refused { .. })), "{wrong}: {refused:?}");
        server.command(&["DEL", &name]).await.unwrap();
        assert_eq!(numbers(&store).await, (1, 0, 0), "{wrong}: it still waits");
    }
    let running = taken(&store, claim(2, 1, &["q"])).await;
    server.command(&["SET", "asynq:{q}:archived", "rubbish"]).await.unwrap();
    let held = Held::of(&running[0]).unwrap();
    let refused = store.settle(vec![(held.clone(), archive())]).await;
    assert!(matches!(refused, Err(Error::Refused { .. })), "{refused:?}");
    server.command(&["DEL", "asynq:{q}:archived"]).await.unwrap();
    store.settle(vec![(held, archive())]).await.unwrap().remove(0).unwrap();
    // In the place of a task: it is set aside, and the next one is taken.
    store.enqueue(tasks(["b", "c"])).await.unwrap();
    server.command(&["DEL", "asynq:{q}:t:b"]).await.unwrap();
    server.command(&["LPUSH", "asynq:{q}:t:b", "rubbish"]).await.unwrap();
    let next = taken(&store, claim(3, 1, &["q"])).await;
    assert_eq!(next[0].key, key("q", "c"));
    server.command(&["DEL", "asynq:{q}:t:b"]).await.unwrap();
    assert_sound(&server, "after the rubbish").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_forgot_the_scripts_is_told_them_again() {
    let server = RedisServer::start().await.unwrap();
    let store = open(&server.url()).await;
    store.enqueue(tasks(["a", "b"])).await.unwrap();
    let running = taken(&store, claim(1, 1, &["q"])).await;
    server.command(&["SCRIPT", "FLUSH"]).await.unwrap();
    let settlements = vec![(Held::of(&running[0]).unwrap(), complete())];
    let exchanged = store.exchange(settlements, claim(2, 1, &["q"])).await.unwrap();
    assert_eq!(exchanged.outcomes[0].as_ref().unwrap().state, None);
    assert_eq!(exchanged.claimed.unwrap().claims[0].task.key, key("q", "b"));
    assert_sound(&server, "after the scripts were told again").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_became_a_replica_is_unavailable_until_it_is_one_again() {
    let (server, other) = (RedisServer::start().await.unwrap(), RedisServer::start().await.unwrap());
    let store = open(&server.url()).await;
    store.enqueue(tasks(["a"])).await.unwrap().remove(0).unwrap();
    // Whom it follows is down, so it keeps what it has and there is something to claim.
    other.kill();
    server.command(&["REPLICAOF", "127.0.0.1", &other.port().to_string()]).await.unwrap();
    let refused = store.claim(claim(1, 1, &["q"])).await.unwrap_err();
    assert!(refused.is_retryable() && refused.to_string().contains("replica"), "{refused}");
    server.command(&["REPLICAOF", "NO", "ONE"]).await.unwrap();
    until_answered(async || store.enqueue(tasks(["b"])).await).await.remove(0).ok();
    assert_eq!(store.get(key("q", "b")).await.unwrap().map(|task| task.state), Some(State::Pending));
    assert_sound(&server, "after it was a replica").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_any_bytes_are_set_aside_and_block_nothing() {
    let server = RedisServer::start().await.unwrap();
    let store = open(&server.url()).await;
    let chance = Chance::seeded(3);
    let mut connection = server.connect().await.unwrap();
    for nth in 0..400 {
        let id = format!("t{nth}");
        store.enqueue(tasks([&id])).await.unwrap();
        let length = (chance.next() % 60) as usize;
        let bytes: Vec<u8> = (0..length).map(|_| (chance.next() >> 32).to_le_bytes()[0]).collect();
        let hash = format!("asynq:{{q}}:t:{id}");
        let fields: [&[u8]; 4] = [b"HSET", hash.as_bytes(), b"msg", &bytes];
        connection.command(&fields).await.unwrap();
    }
    store.enqueue(tasks(["well"])).await.unwrap();
    let page = PageRequest { queue: queue("q"), state: State::Pending, after: None, limit: 1_000 };
    store.page(page).await.unwrap();
    let got = taken(&store, claim(1, 500, &["q"])).await;
    assert!(got.iter().any(|task| task.key == key("q", "well")), "what is well behind them is taken");
    for task in &got {
        for settlement in [retry(0)] {
            store.settle(vec![(Held::of(task).unwrap(), settlement)]).await.unwrap().remove(0).unwrap();
        }
    }
    let request = TakeOver {
        queues: queues(&["q"]),
        limit: 1_000,
        lease: Duration::from_secs(1),
        not_after: Timestamp::MAX,
    };
    store.take_over(request).await.unwrap();
    store.reconcile(queues(&["q"])).await.unwrap();
    let stats = store.queue_stats(queues(&["q"])).await.unwrap().remove(0);
    assert_eq!(stats.quarantined + stats.pending, 401, "each is set aside or waits");
    assert_eq!(stats.active, 0);
    assert_sound(&server, "after the messages of any bytes").await;
    store.close().await.unwrap();
}
