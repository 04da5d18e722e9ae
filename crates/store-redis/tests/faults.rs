//! Servers that forget, refuse, fill up, change their role or lose what they said: nothing is lost, done twice or stuck, and the
//! error says what it was.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

use std::sync::Arc;
use std::time::Duration;

use poolwright_broker::{
    Broker, ClaimRequest, Dispatch, Error, Extension, Held, How, Inspect, PageRequest, Submit, TakeOver,
    Upkeep,
};
use poolwright_conformance::builders::{
    archive, claim, complete, keep, key, queue, queues, retry, task, tasks,
};
use poolwright_core::{Chance, Settlement, State, TaskRecord, Timestamp};
use poolwright_store_redis::{RedisOptions, RedisStore};
use poolwright_testbed::{Direction, Fault, Proxy, RedisServer};

async fn open(url: &str) -> Arc<RedisStore> {
    RedisStore::open(RedisOptions::from_url(url).unwrap()).await.unwrap()
}

async fn numbers(store: &RedisStore) -> (u64, u64, u64) {
    let stats = store.queue_stats(queues(&["q"])).await.unwrap().remove(0);
    (stats.pending, stats.active, stats.processed)
}

async fn taken(store: &RedisStore, request: ClaimRequest) -> Vec<TaskRecord> {
    store.claim(request).await.unwrap().claims.into_iter().map(|claim| claim.task).collect()
}

/// Sends each call again whose answer was lost, as the worker does.
async fn until_answered<T>(mut call: impl AsyncFnMut() -> Result<T, Error>) -> T {
    loop {
        match call().await {
            Ok(answer) => return answer,
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_replies_of_every_step_are_made_good() {
    let server = RedisServer::start().await.unwrap();
    let proxy = Proxy::before(&server).unwrap();
    let store = open(proxy.url()).await;

    proxy.arm(Fault::LoseReplyTo(b"asynq:{q}:pending".to_vec()));
    let outcome = store.enqueue(tasks(["a", "b"])).await.unwrap();
    assert!(
        outcome.iter().all(|stored| stored.as_ref().is_ok_and(|stored| stored.how == How::Stored)),
        "{outcome:?}"
    );
    assert_eq!(numbers(&store).await, (2, 0, 0), "each was stored once");

    proxy.arm(Fault::LoseReplyTo(b"asynq:{q}:pending".to_vec()));
    let mut request = claim(7, 2, &["q"]);
    assert!(store.claim(request.clone()).await.unwrap_err().is_retryable());
    request.resent = true;
    let got = until_answered(async || store.claim(request.clone()).await).await;
    assert_eq!((got.claims.len(), numbers(&store).await), (2, (0, 2, 0)));

    for (at, settlement) in [(0, keep(60, b"r")), (1, archive())] {
        let held = Held::of(&got.claims[at].task).unwrap();
        proxy.arm(Fault::LoseReplyTo(b"asynq:{q}:pending".to_vec()));
        let settle = async || store.settle(vec![(held.clone(), settlement.clone())]).await;
        assert!(settle().await.unwrap_err().is_retryable());
        let outcome = until_answered(settle).await.remove(0);
        assert!(outcome.unwrap().state.is_some(), "it was done, and is not done again");
    }
    assert_eq!(numbers(&store).await, (0, 0, 2));
    proxy.disarm();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_cut_at_any_byte_of_an_enqueue_stores_all_or_nothing_and_once() {
    let server = RedisServer::start().await.unwrap();
    let proxy = Proxy::before(&server).unwrap();
    let store = open(proxy.url()).await;
    store.enqueue(tasks(["first"])).await.unwrap().remove(0).unwrap();
    let begun = proxy.traffic();
    store.enqueue(tasks(["measure"])).await.unwrap().remove(0).unwrap();
    let length = proxy.traffic().to_server - begun.to_server;
    for (nth, at) in (0..=length).step_by(17).enumerate() {
        proxy.arm(Fault::CutAfter(Direction::ToServer, at));
        let id = format!("t{nth}");
        let outcome = until_answered(async || store.enqueue(tasks([&id])).await).await.remove(0);
        proxy.disarm();
        let there = store.get(key("q", &id)).await.unwrap();
        assert!(there.is_some_and(|task| task.state == State::Pending), "cut at {at}");
        assert!(matches!(outcome, Ok(_) | Err(Error::DuplicateId { .. })), "cut at {at}: {outcome:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_extensions_settlements_and_operations_cut_at_any_byte_are_done_once() {
    let server = RedisServer::start().await.unwrap();
    let proxy = Proxy::before(&server).unwrap();
    let store = open(proxy.url()).await;
    let faults = [Direction::ToServer, Direction::ToClient]
        .into_iter()
        .flat_map(|way| (0..600).step_by(61).map(move |at| Fault::CutAfter(way, at)));
    let mut ended = 0;
    for (nth, fault) in faults.enumerate() {
        let id = format!("t{nth}");
        until_answered(async || store.enqueue(tasks([&id])).await).await.remove(0).unwrap();

        let mut request = claim(nth as u64 + 1, 1, &["q"]);
        proxy.arm(fault.clone());
        let claimed = until_answered(async || {
            let answer = store.claim(request.clone()).await;
            request.resent = true;
            answer
        })
        .await;
        assert_eq!(claimed.claims.len(), 1, "{fault:?}");
        assert_eq!(claimed.claims[0].task.key, key("q", &id), "{fault:?}");
        let held = Held::of(&claimed.claims[0].task).unwrap();

        proxy.arm(fault.clone());
        let lease = Duration::from_secs(60);
        let kept = until_answered(async || store.extend(vec![held.clone()], lease).await).await;
        assert!(matches!(kept[0], Extension::Kept(_)), "{fault:?}: {kept:?}");

        proxy.arm(fault.clone());
        let settle = async || store.settle(vec![(held.clone(), archive())]).await;
        let settled = until_answered(settle).await.remove(0).unwrap();
        assert_eq!(settled.state, Some(State::Archived), "{fault:?}");
        ended += 1;

        proxy.arm(fault.clone());
        let deleted = until_answered(async || match store.delete(key("q", &id)).await {
            // The first call did it, and its answer was lost.
            Err(Error::NotFound { .. }) => Ok(State::Archived),
            answer => answer,
        });
        assert_eq!(deleted.await, State::Archived, "{fault:?}");
        proxy.disarm();
        let now = until_answered(async || store.queue_stats(queues(&["q"])).await).await.remove(0);
        assert_eq!((now.size(), now.processed, now.failed), (0, ended, ended), "{fault:?}");
    }
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
    store.close().await.unwrap();
}
