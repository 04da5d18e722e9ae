//! A file that is removed or replaced while it is in use: seen by the next beat, and nothing goes where nobody looks.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod stage;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use poolwright_broker::{Broker, Dispatch, Error, Inspect, ServerBeat, ServerId, Submit, Upkeep};
use poolwright_conformance::Harness;
use poolwright_core::{Chance, DeadLetterSink, State};
use poolwright_store_sqlite::SqliteStore;
use stage::tasks::{done, key, queue, request, task};
use stage::{FileHarness, assert_consistent};

async fn beat(harness: &FileHarness) -> Result<(), Error> {
    let beat = ServerBeat {
        id: ServerId("a".into()),
        host: "here".to_owned(),
        pid: 1,
        started_at: harness.now(),
        beat_at: harness.now(),
        stopping: false,
        pools: Vec::new(),
        tasks: Vec::new(),
    };
    harness.store().beat(beat, Duration::from_secs(10)).await
}

fn beside(harness: &FileHarness, name: &str) -> PathBuf {
    harness.path().with_file_name(name)
}

#[track_caller]
fn assert_lost<T: std::fmt::Debug>(answer: Result<T, Error>) {
    let error = answer.expect_err("the file is lost");
    assert!(error.is_retryable(), "a worker keeps its results: {error}");
    let said = error.to_string();
    assert!(said.contains("tasks.db was removed or replaced while it was in use"), "{said}");
    assert!(said.contains("restart") && said.contains("tasks in the old file stay in it"), "{said}");
}

#[tokio::test]
async fn a_file_that_was_removed_is_missed_by_the_next_beat() {
    let harness = FileHarness::new(1);
    beat(&harness).await.unwrap();
    fs::remove_file(harness.path()).unwrap();
    assert_lost(beat(&harness).await);
}

#[tokio::test]
async fn a_file_that_was_replaced_is_seen_by_the_next_beat_and_left_alone() {
    let harness = FileHarness::new(1);
    let other = FileHarness::new(2);
    other.store().enqueue(vec![task("theirs")]).await.unwrap().remove(0).unwrap();
    other.store().close().await.unwrap();
    harness.store().enqueue(vec![task("ours")]).await.unwrap().remove(0).unwrap();
    let restored = fs::read(other.path()).unwrap();
    fs::copy(other.path(), beside(&harness, "restored.db")).unwrap();
    fs::rename(beside(&harness, "restored.db"), harness.path()).unwrap();
    assert_lost(beat(&harness).await);
    assert_lost(harness.store().enqueue(vec![task("late")]).await);
    harness.store().close().await.unwrap();
    assert_eq!(fs::read(harness.path()).unwrap(), restored);
    // Nothing of the old file's log is taken for the new one's.
    let store = harness.another();
    assert_eq!(store.get(key("ours")).await.unwrap(), None);
    assert!(store.get(key("theirs")).await.unwrap().is_some());
    store.close().await.unwrap();
    assert_consistent(&harness.path());
}

#[tokio::test]
async fn a_file_that_is_put_back_is_fine_again_and_takes_what_waited() {
    let harness = FileHarness::new(1);
    let (store, chance) = (harness.store(), Chance::seeded(1));
    store.enqueue(vec![task("a"), task("b")]).await.unwrap();
    let running = store.claim(request(1, &chance)).await.unwrap().claims.remove(0).task;
    fs::rename(harness.path(), beside(&harness, "away.db")).unwrap();
    assert_lost(beat(&harness).await);
    assert_lost(store.settle(vec![done(&running)]).await);
    assert_lost(store.claim(request(1, &chance)).await);
    assert_lost(store.enqueue(vec![task("c")]).await);
    assert_lost(store.queue_stats(vec![queue()]).await);
    assert!(store.record(&[]).await.is_err(), "the ledger is in the same file");
    fs::rename(beside(&harness, "away.db"), harness.path()).unwrap();
    beat(&harness).await.unwrap();
    assert_eq!(store.settle(vec![done(&running)]).await.unwrap().remove(0).unwrap().state, None);
    assert_eq!(store.get(key("b")).await.unwrap().unwrap().state, State::Pending);
    assert_eq!(store.get(key("c")).await.unwrap(), None, "what was refused was not done");
    store.close().await.unwrap();
    assert_consistent(&harness.path());
}

/// Who only produces or looks has no beat.
#[tokio::test]
async fn without_a_beat_a_lost_file_is_noticed_by_the_next_call_after_a_moment() {
    for look in [false, true] {
        let harness = FileHarness::new(1);
        let store = harness.store();
        fs::remove_file(harness.path()).unwrap();
        harness.elapse(Duration::from_secs(1)).await;
        match look {
            true => assert_lost(store.queues().await),
            false => assert_lost(store.enqueue(vec![task("a")]).await),
        }
    }
}

/// A connection that meets its log for the first time after the file is gone gets an answer from SQLite that says little.
#[tokio::test]
async fn what_sqlite_says_of_a_lost_file_is_explained() {
    let harness = FileHarness::new(1);
    fs::remove_file(harness.path()).unwrap();
    assert_lost(harness.store().queues().await);
}

#[tokio::test]
async fn a_store_whose_file_is_lost_closes() {
    let harness = FileHarness::new(1);
    let store: Arc<SqliteStore> = harness.store();
    fs::remove_file(harness.path()).unwrap();
    assert_lost(beat(&harness).await);
    store.close().await.unwrap();
    assert!(!harness.path().exists(), "closing makes no new file");
}
