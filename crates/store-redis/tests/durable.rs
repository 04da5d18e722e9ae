//! Enqueues that wait for replicas.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

use poolwright_broker::{Error, Inspect, Submit};
use poolwright_conformance::builders::task;
use poolwright_store_redis::{RedisOptions, RedisStore};
use poolwright_testbed::RedisServer;

async fn enqueue(server: &RedisServer, replicas: u32, id: &str) -> Result<(), Error> {
    let url = format!("{}?enqueue_replicas={replicas}&write_timeout_ms=3000", server.url());
    let store = RedisStore::open(RedisOptions::from_url(&url).unwrap()).await.unwrap();
    store.enqueue(vec![task(id).build()]).await?.remove(0)?;
    Ok(())
}

#[tokio::test]
async fn an_enqueue_is_answered_once_a_replica_has_it() {
    let primary = RedisServer::start().await.unwrap();
    let replica = RedisServer::options().replica_of(&primary).start().await.unwrap();
    replica.until_replicated().await.unwrap();
    enqueue(&primary, 1, "a").await.unwrap();
    let there = replica.command(&["EXISTS", "asynq:{q}:t:a"]).await.unwrap();
    assert_eq!(there.integer(), Some(1));
}

#[tokio::test]
async fn replicas_that_are_missing_are_told_of_and_the_task_is_not_lost() {
    let primary = RedisServer::start().await.unwrap();
    let url = format!("{}?enqueue_replicas=1&write_timeout_ms=100", primary.url());
    let store = RedisStore::open(RedisOptions::from_url(&url).unwrap()).await.unwrap();
    let refused = store.enqueue(vec![task("a").build()]).await;
    let Err(Error::Unavailable { why }) = refused else { panic!("expected to be told, got {refused:?}") };
    assert!(why.contains("0 of 1 replicas"), "{why}");
    assert_eq!(store.queues().await.unwrap().len(), 1, "the primary has it");
}
