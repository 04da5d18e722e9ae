//! The write-ahead log, moved by a thread beside the writer: under readers that stay, others who move it, a close in the
//! middle and a disk that is full. It begins anew, and nothing that was accepted is lost.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod stage;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use poolwright_broker::{Broker, Inspect, Submit};
use poolwright_conformance::SAFETY;
use poolwright_store_sqlite::{Options, SqliteStore, Synchronous};
use rusqlite::Connection;
use stage::assert_consistent;
use stage::tasks::{queue, task};
use tempfile::TempDir;

const MIB: u64 = 1_024 * 1_024;

/// Tells the test that it is the process whose disk is full, on this file.
const FILE: &str = "POOLWRIGHT_TEST_FILE";

fn store(path: &Path) -> Arc<SqliteStore> {
    SqliteStore::open(Options { synchronous: Synchronous::Normal, ..Options::new(path) }).unwrap()
}

/// A store on a file of its own, which goes with the directory.
fn fresh() -> (TempDir, PathBuf, Arc<SqliteStore>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tasks.db");
    let store = store(&path);
    (dir, path, store)
}

fn log_of(path: &Path) -> PathBuf {
    path.with_extension("db-wal")
}

fn log_bytes(path: &Path) -> u64 {
    std::fs::metadata(log_of(path)).map_or(0, |meta| meta.len())
}

/// What SQLite writes into the head of the log whenever it begins anew.
fn salt(path: &Path) -> Vec<u8> {
    let head = std::fs::read(log_of(path)).unwrap();
    head[16..24].to_vec()
}

/// Enqueues half a MiB.
async fn write(store: &SqliteStore, name: &str) -> Result<(), poolwright_broker::Error> {
    let wide = |nth| {
        let mut wide = task(&format!("{name}-{nth}"));
        wide.payload = vec![b'x'; 64 * 1_024].into();
        wide
    };
    let outcomes = store.enqueue((0..8).map(wide).collect()).await?;
    outcomes.into_iter().for_each(|outcome| drop(outcome.unwrap()));
    Ok(())
}

async fn pending(store: &SqliteStore) -> u64 {
    store.queue_stats(vec![queue()]).await.unwrap()[0].pending
}

/// Nothing is left to be moved, and nothing is wrong with what was.
fn assert_closed_well(path: &Path) {
    assert_eq!(log_bytes(path), 0, "the log was moved at the end");
    assert_consistent(path);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_stays_keeps_the_log_and_once_it_has_gone_the_log_begins_anew() {
    let (_dir, path, store) = fresh();
    let mut written = 0;
    write(&store, "first").await.unwrap();
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let seen = |reader: &Connection| -> i64 {
        reader.query_row("SELECT count(*) FROM tasks", [], |row| row.get(0)).unwrap()
    };
    assert_eq!(seen(&reader), 8);
    let before = salt(&path);
    while log_bytes(&path) < 24 * MIB {
        written += 1;
        write(&store, &format!("t{written}")).await.unwrap();
    }
    assert_eq!((seen(&reader), salt(&path) == before), (8, true), "it sees what it saw");
    drop(reader);
    let story = async {
        while salt(&path) == before {
            written += 1;
            write(&store, &format!("t{written}")).await.unwrap();
        }
    };
    tokio::time::timeout(SAFETY, story).await.expect("the log never begins anew");
    assert_eq!(pending(&store).await, 8 * (written + 1));
    store.close().await.unwrap();
    assert_closed_well(&path);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_who_move_the_log_all_the_time_harm_nobody() {
    let (_dir, path, store) = fresh();
    let ends = Arc::new(AtomicBool::new(false));
    let others = ["PASSIVE", "TRUNCATE"].map(|mode| {
        let (path, ends) = (path.clone(), Arc::clone(&ends));
        thread::spawn(move || {
            let conn = Connection::open(path).unwrap();
            while !ends.load(Ordering::Relaxed) {
                // One that meets another is refused; that is part of the play.
                let _ = conn.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(()));
            }
        })
    });
    let writers = [1, 2].map(|writer| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            for nth in 0..40 {
                write(&store, &format!("w{writer}-{nth}")).await.unwrap();
            }
        })
    });
    for writer in writers {
        writer.await.unwrap();
    }
    ends.store(true, Ordering::Relaxed);
    others.into_iter().for_each(|other| other.join().unwrap());
    assert_eq!(pending(&store).await, 2 * 40 * 8);
    store.close().await.unwrap();
    assert_closed_well(&path);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_closed_while_its_log_is_moved_leaves_nothing_to_move() {
    let (_dir, path, store) = fresh();
    let mut written = 0;
    // The thread begins at 16 MiB, after the answer of the call that brought the log there.
    while log_bytes(&path) < 16 * MIB {
        written += 1;
        write(&store, &format!("t{written}")).await.unwrap();
    }
    tokio::time::timeout(SAFETY, store.close()).await.expect("the close hangs").unwrap();
    assert_closed_well(&path);
    let again = self::store(&path);
    assert_eq!(pending(&again).await, 8 * written);
    again.close().await.unwrap();
}

/// The process whose disk is full: writes until it may write no more, and says how much was accepted. Alone it has all the
/// room it wants, so it stops by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_process_writes_until_its_disk_is_full() {
    let (path, _dir) = match std::env::var_os(FILE) {
        Some(file) => (PathBuf::from(file), None),
        None => {
            let dir = tempfile::tempdir().unwrap();
            (dir.path().join("tasks.db"), Some(dir))
        }
    };
    let store = store(&path);
    let (mut accepted, mut refused) = (0, 0);
    for nth in 0..160 {
        match write(&store, &format!("t{nth}")).await {
            Ok(()) => accepted += 1,
            Err(_) => refused += 1,
        }
    }
    println!("accepted {accepted} refused {refused}");
    assert_eq!(pending(&store).await, 8 * accepted);
    store.close().await.unwrap();
}

#[cfg(unix)]
#[test]
fn a_disk_that_is_full_when_the_log_is_moved_loses_nothing_that_was_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tasks.db");
    // No file may grow beyond 24 MiB, in blocks of 512 bytes: the log gets there by its first 16 MiB, and the file by the
    // second.
    let run = "ulimit -f 49152 && trap '' XFSZ && exec \"$0\" --exact one_process_writes_until_its_disk_is_full --nocapture";
    let child = Command::new("sh")
        .args(["-c", run])
        .arg(std::env::current_exe().unwrap())
        .env(FILE, &path)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{said}{}", String::from_utf8_lossy(&child.stderr));
    let mut numbers = said.split_whitespace().skip_while(|word| *word != "accepted").skip(1).step_by(2);
    let mut number = || -> u64 { numbers.next().unwrap().parse().unwrap() };
    let (accepted, refused) = (number(), number());
    assert!(accepted >= 32 && refused > 0, "{said}");
    // With room again everything that was accepted is there, and the log can be moved.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = store(&path);
        assert_eq!(pending(&store).await, 8 * accepted);
        write(&store, "after").await.unwrap();
        store.close().await.unwrap();
    });
    assert_closed_well(&path);
}
