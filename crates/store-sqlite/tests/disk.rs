//! Files that are busy or full: waited for, refused clearly, and nothing is half done.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod stage;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use poolwright_broker::{Broker, Bulk, BulkAction, Error, Inspect, Submit};
use poolwright_core::State;
use poolwright_store_sqlite::{Options, SqliteStore, Synchronous};
use rusqlite::Connection;
use stage::assert_consistent;
use stage::tasks::{key, queue, task};

fn options(path: &Path) -> Options {
    Options { synchronous: Synchronous::Normal, ..Options::new(path) }
}

async fn pending(store: &SqliteStore) -> u64 {
    store.queue_stats(vec![queue()]).await.unwrap()[0].pending
}

/// Enqueues until the file takes no more; gives the ids that were accepted, and the refusal.
async fn fill(store: &SqliteStore) -> (Vec<String>, Error) {
    let mut stored = Vec::new();
    for nth in 0.. {
        let id = format!("t{nth}");
        let mut wide = task(&id);
        wide.payload = vec![b'x'; 1_500].into();
        match store.enqueue(vec![wide]).await {
            Ok(outcomes) => {
                outcomes.into_iter().for_each(|outcome| drop(outcome.unwrap()));
                stored.push(id);
            }
            Err(error) => return (stored, error),
        }
    }
    unreachable!("the file is limited")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_file_refuses_clearly_loses_nothing_and_heals() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tasks.db");
    let store = SqliteStore::open(Options { file_bytes_max: Some(600 * 1_024), ..options(&path) }).unwrap();
    let (stored, error) = fill(&store).await;
    assert!(error.is_retryable(), "{error}");
    let said = error.to_string();
    assert!(said.contains("no room for") && said.contains("make room, nothing was stored"), "{said}");
    assert!(stored.len() > 100, "{} tasks fit", stored.len());
    assert_eq!(pending(&store).await, stored.len() as u64);
    for id in &stored {
        assert!(store.get(key(id)).await.unwrap().is_some(), "{id}");
    }
    // Making room needs none: the same store goes on.
    let bulk = Bulk {
        queue: queue(),
        state: State::Pending,
        action: BulkAction::Delete,
        limit: 50,
        reason: String::new(),
    };
    assert_eq!(store.bulk(bulk).await.unwrap(), 50);
    store.enqueue(vec![task("after")]).await.unwrap().remove(0).unwrap();
    assert_eq!(pending(&store).await, stored.len() as u64 - 49);
    store.close().await.unwrap();
    assert_consistent(&path);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_fit_fails_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tasks.db");
    let store = SqliteStore::open(Options { file_bytes_max: Some(600 * 1_024), ..options(&path) }).unwrap();
    store.enqueue((0..50).map(|nth| task(&format!("small{nth}"))).collect()).await.unwrap();
    let huge = |nth: usize| {
        let mut huge = task(&format!("huge{nth}"));
        huge.payload = vec![b'x'; 1_000_000].into();
        huge
    };
    // They meet in one transaction or do not: either way each has its own fate.
    let calls = (0..20).map(|nth| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            match nth % 4 {
                0 => (false, store.enqueue(vec![huge(nth)]).await.map(drop)),
                _ => (true, store.delete(key(&format!("small{nth}"))).await.map(drop)),
            }
        })
    });
    for call in calls.collect::<Vec<_>>() {
        let (fits, outcome) = call.await.unwrap();
        assert_eq!(outcome.is_ok(), fits, "{outcome:?}");
    }
    assert_eq!(pending(&store).await, 35);
    store.close().await.unwrap();
    assert_consistent(&path);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_file_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tasks.db");
    let store = SqliteStore::open(options(&path)).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let call = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.enqueue(vec![task("a")]).await }
    });
    // Readers are not held up, and each of these gives the writer time to meet the lock.
    for _ in 0..200 {
        assert_eq!(pending(&store).await, 0);
        assert!(!call.is_finished(), "the call cannot be done while the file is locked");
    }
    other.execute_batch("COMMIT").unwrap();
    call.await.unwrap().unwrap().remove(0).unwrap();
    assert_eq!(pending(&store).await, 1);
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_stays_busy_is_given_up_and_found_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tasks.db");
    let store =
        SqliteStore::open(Options { busy_wait: Duration::from_millis(20), ..options(&path) }).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.enqueue(vec![task("a")]).await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("locked by another process"), "{error}");
    other.execute_batch("COMMIT").unwrap();
    store.enqueue(vec![task("a")]).await.unwrap().remove(0).unwrap();
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_does_not_wait_for_a_busy_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tasks.db");
    let store = SqliteStore::open(Options { busy_wait: Duration::MAX, ..options(&path) }).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let call = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.enqueue(vec![task("a")]).await }
    });
    assert_eq!(pending(&store).await, 0);
    store.close().await.unwrap();
    let error = call.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. } | Error::Refused { .. }), "{error}");
}
