//! Opening: what is refused, with which words, and that it was left alone; what many starters at once come to.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod stage;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use poolwright_broker::{Broker, Error as BrokerError, Inspect, Submit};
use poolwright_store_sqlite::{Error, Options, SqliteStore};
use rusqlite::Connection;
use stage::tasks::{queue, task};
use stage::{FileHarness, assert_consistent};

fn refusal(path: &Path) -> Error {
    SqliteStore::open(Options::new(path)).expect_err("the file is refused")
}

/// Every byte of every file in the directory.
fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), fs::read(&path).unwrap_or_default())).collect()
}

#[test]
fn a_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let said = refusal(dir.path()).to_string();
    assert!(said.contains("is a directory; name a file in it, such as"), "{said}");
    assert!(contents(dir.path()).is_empty());
}

#[test]
fn a_file_that_is_no_database_is_left_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notes.txt");
    fs::write(&path, "not a database, but somebody's notes\n".repeat(300)).unwrap();
    let before = contents(dir.path());
    assert_eq!(refusal(&path), Error::NotADatabase { path: path.clone() });
    assert_eq!(contents(dir.path()), before);
}

#[test]
fn another_applications_database_is_left_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    for (name, pragma) in [("plain.db", ""), ("marked.db", "PRAGMA application_id = 7;")] {
        let path = dir.path().join(name);
        Connection::open(&path).unwrap().execute_batch(&format!("{pragma} CREATE TABLE theirs (x)")).unwrap();
        let before = contents(dir.path());
        assert!(matches!(refusal(&path), Error::Foreign { .. }), "{name}");
        assert_eq!(contents(dir.path()), before, "{name}");
    }
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_left_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tasks.db");
    SqliteStore::open(Options::new(&path)).unwrap().close().await.unwrap();
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 77).unwrap();
    let before = contents(dir.path());
    let error = refusal(&path);
    assert!(matches!(error, Error::NewerVersion { found: 77, .. }), "{error:?}");
    let said = error.to_string();
    assert!(said.contains("has schema version 77, this program knows versions up to"), "{said}");
    assert!(matches!(BrokerError::from(error), BrokerError::Refused { .. }));
    // Only a log that was emptied may have come beside it.
    let after: Vec<_> =
        contents(dir.path()).into_iter().filter(|(path, _)| before.iter().any(|(b, _)| b == path)).collect();
    assert_eq!(after, before);
}

#[test]
fn a_missing_directory_is_made_only_when_that_is_wanted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a/b/tasks.db");
    let said =
        SqliteStore::open(Options { create_parents: false, ..Options::new(&path) }).unwrap_err().to_string();
    assert!(said.contains("there is no directory") && said.contains("create it"), "{said}");
    assert!(contents(dir.path()).is_empty());
    SqliteStore::open(Options::new(&path)).unwrap();
    assert!(path.is_file());
}

/// Set for the copy of this program that runs as a user without rights.
const UNPRIVILEGED: &str = "POOLWRIGHT_TEST_READ_ONLY_DIR";

/// A user that owns nothing.
const NOBODY: u32 = 65_534;

#[tokio::test]
async fn a_file_or_directory_that_may_not_be_written_is_named() {
    if let Some(dir) = std::env::var_os(UNPRIVILEGED) {
        return refused_for_want_of_rights(Path::new(&dir));
    }
    let dir = tempfile::tempdir().unwrap();
    let closed = dir.path().join("closed");
    fs::create_dir(&closed).unwrap();
    for path in [dir.path().join("read-only.db"), closed.join("tasks.db")] {
        SqliteStore::open(Options::new(&path)).unwrap().close().await.unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
    }
    fs::set_permissions(dir.path().join("read-only.db"), Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(&closed, Permissions::from_mode(0o555)).unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
    // Rights do not bind the superuser, so then the test goes on as nobody.
    if fs::write(closed.join("probe"), "").is_err() {
        return refused_for_want_of_rights(dir.path());
    }
    fs::remove_file(closed.join("probe")).unwrap();
    let program = dir.path().join("test-program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let output = Command::new(&program)
        .args(["--exact", "a_file_or_directory_that_may_not_be_written_is_named", "--nocapture"])
        .env(UNPRIVILEGED, dir.path())
        .current_dir(dir.path())
        .uid(NOBODY)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn refused_for_want_of_rights(dir: &Path) {
    let file = dir.join("read-only.db");
    assert_eq!(refusal(&file), Error::ReadOnly { path: file });
    let closed = dir.join("closed");
    assert_eq!(refusal(&closed.join("tasks.db")), Error::ReadOnly { path: closed.clone() });
    assert_eq!(refusal(&closed.join("new.db")), Error::ReadOnly { path: closed.clone() });
    assert_eq!(contents(&closed).len(), 1, "nothing came into the directory");
}

/// Set for the copy of this program that has few files to open.
const FEW_FILES: &str = "POOLWRIGHT_TEST_FEW_FILES_DIR";

#[test]
fn too_many_open_files_are_not_taken_for_a_want_of_rights() {
    if let Some(dir) = std::env::var_os(FEW_FILES) {
        return opened_once_files_are_free(Path::new(&dir));
    }
    let dir = tempfile::tempdir().unwrap();
    // In a process of its own: the limit is one for all tests in it.
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 64 && exec \"$0\" --exact \"$1\" --nocapture"])
        .arg(std::env::current_exe().unwrap())
        .arg("too_many_open_files_are_not_taken_for_a_want_of_rights")
        .env(FEW_FILES, dir.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn opened_once_files_are_free(dir: &Path) {
    let path = dir.join("tasks.db");
    let mut held: Vec<_> = std::iter::from_fn(|| fs::File::open("/dev/null").ok()).collect();
    let mut refusals = Vec::new();
    while let Err(error) = SqliteStore::open(Options::new(&path)) {
        assert!(!matches!(error, Error::ReadOnly { .. }), "{error}");
        refusals.push(error.to_string());
        held.pop().expect("it opens once enough files are free");
    }
    assert!(refusals[0].ends_with("Too many open files (os error 24)"), "{refusals:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_who_open_a_new_file_at_once_share_it() {
    const STARTERS: usize = 8;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tasks.db");
    let barrier = Arc::new(Barrier::new(STARTERS));
    let starters: Vec<_> = (0..STARTERS)
        .map(|_| {
            let (path, barrier) = (path.clone(), Arc::clone(&barrier));
            std::thread::spawn(move || {
                barrier.wait();
                SqliteStore::open(Options::new(path)).unwrap()
            })
        })
        .collect();
    let stores: Vec<_> = starters.into_iter().map(|starter| starter.join().unwrap()).collect();
    for (nth, store) in stores.iter().enumerate() {
        store.enqueue(vec![task(&nth.to_string())]).await.unwrap().remove(0).unwrap();
    }
    let stats = stores[0].queue_stats(vec![queue()]).await.unwrap();
    assert_eq!(stats[0].pending, STARTERS as u64);
    for store in stores {
        store.close().await.unwrap();
    }
    assert_consistent(&path);
}

#[tokio::test]
async fn a_file_that_is_up_to_date_is_opened_while_another_process_writes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tasks.db");
    SqliteStore::open(Options::new(&path)).unwrap().close().await.unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE; UPDATE meta SET next_pos = next_pos + 1").unwrap();
    // Without any patience the first lock that it met would be the end.
    let options = || Options { busy_wait: Duration::ZERO, ..Options::new(&path) };
    let store = SqliteStore::open(options()).unwrap();
    assert!(store.queues().await.unwrap().is_empty());
    // Nor does it when it is not the first one here.
    let second = SqliteStore::open(options()).unwrap();
    assert!(second.queues().await.unwrap().is_empty());
    other.execute_batch("COMMIT").unwrap();
    store.close().await.unwrap();
    second.close().await.unwrap();
}

#[tokio::test]
async fn closing_leaves_one_file_and_nothing_in_a_log() {
    let harness = FileHarness::new(1);
    let store = harness.store();
    store.enqueue((0..100).map(|nth| task(&nth.to_string())).collect()).await.unwrap();
    store.close().await.unwrap();
    let files = contents(harness.path().parent().unwrap());
    assert_eq!(files.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>(), [harness.path()]);
    assert_consistent(&harness.path());
}

#[tokio::test]
async fn an_empty_file_is_a_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tasks.db");
    fs::write(&path, "").unwrap();
    let store = SqliteStore::open(Options::new(&path)).unwrap();
    store.enqueue(vec![task("a")]).await.unwrap().remove(0).unwrap();
    store.close().await.unwrap();
}
