//! Several processes on one file: nothing lost, nothing done twice, a killed one leaves everything it was told.
//!
//! A process is this test program, asked for one of its own tests. Such a test plays alone on a file of its own when
//! nobody says otherwise, so it says something either way.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod stage;

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use poolwright_broker::{Broker, Dispatch, Inspect, Signal, Submit};
use poolwright_conformance::SAFETY;
use poolwright_core::{Chance, State};
use poolwright_store_sqlite::{Options, SqliteStore, Synchronous};
use stage::assert_consistent;
use stage::tasks::{done, key, queue, request, task};

/// Tells a test that it is one of several processes, on this file.
const FILE: &str = "POOLWRIGHT_TEST_FILE";

/// What each process puts before its ids.
const NAME: &str = "POOLWRIGHT_TEST_NAME";

fn store(path: &Path) -> Arc<SqliteStore> {
    SqliteStore::open(Options { synchronous: Synchronous::Normal, ..Options::new(path) }).unwrap()
}

/// The file to work on, and what keeps it; a fresh one when the test plays alone.
fn file() -> (PathBuf, Option<tempfile::TempDir>) {
    match std::env::var_os(FILE) {
        Some(file) => (file.into(), None),
        None => {
            let dir = tempfile::tempdir().unwrap();
            (dir.path().join("tasks.db"), Some(dir))
        }
    }
}

fn name() -> String {
    std::env::var(NAME).unwrap_or_else(|_| "alone".to_owned())
}

fn process(test: &str, path: &Path, name: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(FILE, path)
        .env(NAME, name)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Says a line at once: a parent reads it, or nobody.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}

const WRITERS: usize = 4;
const TASKS_EACH: usize = 150;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_process_does_all_that_its_writers_write() {
    let (path, _dir) = file();
    let (store, name) = (store(&path), name());
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (store, name) = (Arc::clone(&store), name.clone());
            tokio::spawn(async move {
                for nth in 0..TASKS_EACH / 3 {
                    let ids = (0..3).map(|at| task(&format!("{name}-{writer}-{nth}-{at}"))).collect();
                    store.enqueue(ids).await.unwrap().into_iter().for_each(|outcome| drop(outcome.unwrap()));
                }
            })
        })
        .collect();
    let claimers: Vec<_> = (0..WRITERS)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { drain(&store, || {}).await })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let mut ids = HashSet::new();
    for claimer in claimers {
        ids.extend(claimer.await.unwrap());
    }
    // What the claimers left because the writers were not done yet.
    ids.extend(drain(&store, || {}).await);
    store.close().await.unwrap();
    if std::env::var_os(FILE).is_none() {
        assert_eq!(ids.len(), WRITERS * TASKS_EACH);
        assert_consistent(&path);
    }
    ids.iter().for_each(|id| say(&format!("done {id}")));
}

/// Claims and completes until there is nothing; gives the ids.
async fn drain(store: &SqliteStore, mut each: impl FnMut()) -> Vec<String> {
    let chance = Chance::from_entropy();
    let mut ids = Vec::new();
    loop {
        let claims = store.claim(request(7, &chance)).await.unwrap().claims;
        if claims.is_empty() {
            return ids;
        }
        let settlements = claims.iter().map(|claim| done(&claim.task)).collect();
        for (outcome, claim) in store.settle(settlements).await.unwrap().into_iter().zip(&claims) {
            outcome.unwrap();
            ids.push(claim.task.key.id.as_str().to_owned());
            each();
        }
    }
}

#[test]
fn two_processes_on_one_file_do_every_task_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tasks.db");
    // Both open it before it is there.
    let children = ["a", "b"].map(|name| process("one_process_does_all_that_its_writers_write", &path, name));
    let mut ids = Vec::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "a process failed: {}", String::from_utf8_lossy(&output.stdout));
        let text = String::from_utf8(output.stdout).unwrap();
        ids.extend(text.lines().filter_map(|line| line.strip_prefix("done ")).map(str::to_owned));
    }
    let distinct: HashSet<&String> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "a task was done twice");
    assert_eq!(ids.len(), 2 * WRITERS * TASKS_EACH, "a task was lost");
    assert_consistent(&path);
}

/// Writes tasks and completes some, and says what was answered. Without end when a parent is there to kill it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_is_in_the_file() {
    let (path, _dir) = file();
    let (store, name) = (store(&path), name());
    let chance = Chance::from_entropy();
    let rounds = if std::env::var_os(FILE).is_some() { usize::MAX } else { 20 };
    let mut left = HashSet::new();
    for round in 0..rounds {
        let ids: Vec<String> = (0..5).map(|at| format!("{name}-{round}-{at}")).collect();
        let outcomes = store.enqueue(ids.iter().map(|id| task(id)).collect()).await.unwrap();
        outcomes.into_iter().for_each(|outcome| drop(outcome.unwrap()));
        ids.iter().for_each(|id| say(&format!("stored {id}")));
        left.extend(ids);
        let claims = store.claim(request(2, &chance)).await.unwrap().claims;
        claims.iter().for_each(|claim| say(&format!("ending {}", claim.task.key.id)));
        store.settle(claims.iter().map(|claim| done(&claim.task)).collect()).await.unwrap();
        for claim in &claims {
            say(&format!("ended {}", claim.task.key.id));
            left.remove(claim.task.key.id.as_str());
        }
    }
    for id in &left {
        assert!(store.get(key(id)).await.unwrap().is_some(), "{id}");
    }
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_is_killed_leaves_all_that_it_was_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tasks.db");
    let (mut stored, mut ending, mut ended) = (HashSet::new(), HashSet::new(), HashSet::new());
    for (nth, lines) in [1, 37, 160, 300, 555].into_iter().enumerate() {
        let mut child = process("what_was_answered_is_in_the_file", &path, &nth.to_string());
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        // At least so many, then whatever was said before the kill took effect.
        let mut said: Vec<String> = output.by_ref().take(lines).map(Result::unwrap).collect();
        child.kill().unwrap();
        child.wait().unwrap();
        said.extend(output.map_while(Result::ok));
        for line in said {
            match line.split_once(' ') {
                Some(("stored", id)) => drop(stored.insert(id.to_owned())),
                Some(("ending", id)) => drop(ending.insert(id.to_owned())),
                Some(("ended", id)) => drop(ended.insert(id.to_owned())),
                _ => {}
            }
        }
    }
    assert!(!stored.is_empty() && !ended.is_empty(), "the children said something");
    assert_consistent(&path);
    let store = store(&path);
    for id in &stored {
        let state = store.get(key(id)).await.unwrap().map(|task| task.state);
        match (ended.contains(id), ending.contains(id)) {
            (true, _) => assert_eq!(state, None, "{id} was ended and is back"),
            (false, true) => assert!(matches!(state, None | Some(State::Active)), "{id}: {state:?}"),
            // It may have been claimed just before the kill, with nobody left to say so.
            (false, false) => {
                assert!(matches!(state, Some(State::Pending | State::Active)), "{id} is lost: {state:?}")
            }
        }
    }
    store.close().await.unwrap();
}

/// Has the file open until its parent has gone or says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_holds_the_file_open() {
    let (path, _dir) = file();
    let store = store(&path);
    store.enqueue(vec![task("held")]).await.unwrap().remove(0).unwrap();
    say("open");
    if std::env::var_os(FILE).is_some() {
        std::io::stdin().read_line(&mut String::new()).unwrap();
    }
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newcomer_is_told_that_the_removed_file_is_still_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tasks.db");
    let mut child = process("a_process_holds_the_file_open", &path, "a");
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(output.any(|line| line == "open"), "the child opens the file");
    std::fs::remove_file(&path).unwrap();
    let said = SqliteStore::open(Options::new(&path)).unwrap_err().to_string();
    assert!(said.contains("was removed while another process has it open: end that process"), "{said}");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    let store = store(&path);
    assert_eq!(store.get(key("held")).await.unwrap(), None, "the new file is a new one");
    store.enqueue(vec![task("new")]).await.unwrap().remove(0).unwrap();
    store.close().await.unwrap();
    assert_consistent(&path);
}

/// Enqueues one task and flags another, for whoever listens in another process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_writes_and_goes() {
    let (path, _dir) = file();
    let store = store(&path);
    let outcomes = store.request_cancel(vec![key("running")]).await.unwrap();
    store.enqueue(vec![task(&format!("from-{}", name()))]).await.unwrap().remove(0).unwrap();
    assert_eq!(outcomes.len(), 1);
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_process_writes_wakes_those_who_wait() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tasks.db");
    let store = store(&path);
    let chance = Chance::seeded(1);
    store.enqueue(vec![task("running")]).await.unwrap().remove(0).unwrap();
    let mut watch = store.watch(vec![queue()]);
    let mut cancels = store.subscribe().await.unwrap();
    assert_eq!(store.claim(request(1, &chance)).await.unwrap().claims.len(), 1);
    let child = process("a_process_writes_and_goes", &path, "b");
    let waiting = async {
        loop {
            watch.changed().await;
            let claims = store.claim(request(1, &chance)).await.unwrap().claims;
            if let Some(claim) = claims.first() {
                return claim.task.key.clone();
            }
        }
    };
    let found = tokio::time::timeout(SAFETY, waiting).await.expect("the watch hears of the task");
    assert_eq!(found, key("from-b"));
    let cancel =
        tokio::time::timeout(SAFETY, cancels.next()).await.expect("the feed hears of the flag").unwrap();
    assert_eq!(cancel.key, key("running"));
    assert!(child.wait_with_output().unwrap().status.success());
    store.close().await.unwrap();
}
