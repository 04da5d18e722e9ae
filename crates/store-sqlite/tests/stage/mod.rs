//! A store on a file of its own, for the suite and for the store's own tests.

#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

pub(crate) mod tasks;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use poolwright_broker::Broker;
use poolwright_conformance::{Harness, START};
use poolwright_core::clock::ManualClock;
use poolwright_core::{BoxFuture, Chance, Clock, TaskKey, Timestamp};
use poolwright_store_sqlite::{Options, SqliteStore, Synchronous};
use rusqlite::{Connection, params};
use tempfile::TempDir;

/// The store, its clock and its directory.
pub(crate) struct FileHarness {
    store: Mutex<Arc<SqliteStore>>,
    clock: ManualClock,
    chance: Chance,
    dir: TempDir,
}

impl FileHarness {
    /// A fresh file.
    pub(crate) fn new(seed: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (clock, chance) = (ManualClock::at(START), Chance::seeded(seed));
        let store = SqliteStore::open(options(dir.path(), &clock, &chance)).unwrap();
        Self { store: Mutex::new(store), clock, chance, dir }
    }

    /// The store itself.
    pub(crate) fn store(&self) -> Arc<SqliteStore> {
        Arc::clone(&self.store.lock().unwrap())
    }

    /// The file.
    pub(crate) fn path(&self) -> PathBuf {
        file(self.dir.path())
    }

    /// A second store on the same file and clock, as another process would have.
    pub(crate) fn another(&self) -> Arc<SqliteStore> {
        SqliteStore::open(options(self.dir.path(), &self.clock, &self.chance)).unwrap()
    }
}

fn file(dir: &Path) -> PathBuf {
    dir.join("tasks.db")
}

fn options(dir: &Path, clock: &ManualClock, chance: &Chance) -> Options {
    Options {
        synchronous: Synchronous::Normal,
        wake_interval: Duration::from_millis(1),
        clock: Arc::new(clock.clone()),
        chance: chance.clone(),
        ..Options::new(file(dir))
    }
}

impl Harness for FileHarness {
    fn broker(&self) -> Arc<dyn Broker> {
        self.store()
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn elapse(&self, by: Duration) -> BoxFuture<'_, ()> {
        self.clock.advance(by);
        Box::pin(std::future::ready(()))
    }

    fn reopen(&self) -> BoxFuture<'_, Arc<dyn Broker>> {
        Box::pin(async {
            self.store().close().await.unwrap();
            let store = self.another();
            *self.store.lock().unwrap() = Arc::clone(&store);
            store as Arc<dyn Broker>
        })
    }

    fn poison<'a>(&'a self, key: &'a TaskKey) -> BoxFuture<'a, ()> {
        damage(&self.path(), key, "about", b"{\"half\":");
        Box::pin(std::future::ready(()))
    }
}

/// Writes bytes into a text column of a task's row, behind the store's back.
pub(crate) fn damage(file: &Path, key: &TaskKey, column: &str, bytes: &[u8]) {
    let conn = Connection::open(file).unwrap();
    let changed = conn
        .execute(
            &format!(
                "UPDATE tasks SET {column} = CAST(?3 AS TEXT) WHERE id = ?2 \
                 AND queue = (SELECT seq FROM queues WHERE name = ?1)"
            ),
            params![key.queue.as_str(), key.id.as_str(), bytes],
        )
        .unwrap();
    assert_eq!(changed, 1, "the task to damage is there");
}

/// Asserts that the counters of every queue are the numbers of its rows, and that nothing hangs on tasks that are gone.
pub(crate) fn assert_consistent(file: &Path) {
    let conn = Connection::open(file).unwrap();
    let ask = |sql: &str| -> i64 { conn.query_row(sql, [], |row| row.get(0)).unwrap() };
    for (state, column) in
        ["pending", "active", "scheduled", "retry", "archived", "completed"].iter().enumerate()
    {
        let wrong = ask(&format!(
            "SELECT count(*) FROM queues q WHERE {column} <> \
             (SELECT count(*) FROM tasks t WHERE t.queue = q.seq AND t.state = {state})"
        ));
        assert_eq!(wrong, 0, "queues whose count of {column} tasks is wrong");
    }
    for table in ["subjects", "locks", "payloads", "follow_ups", "cancels", "unrecorded"] {
        let sql = format!("SELECT count(*) FROM {table} WHERE task NOT IN (SELECT seq FROM tasks)");
        assert_eq!(ask(&sql), 0, "rows of {table} without a task");
    }
    for (bit, table) in [(2, "subjects"), (4, "follow_ups"), (8, "payloads"), (16, "unrecorded")] {
        let sql = format!(
            "SELECT count(*) FROM tasks t WHERE (flags & {bit} <> 0) <> \
             EXISTS (SELECT 1 FROM {table} x WHERE x.task = t.seq)"
        );
        assert_eq!(ask(&sql), 0, "tasks whose bit {bit} does not say whether {table} has rows of theirs");
    }
    let flagged = "SELECT count(*) FROM tasks t WHERE (state = 1 AND flags & 32 <> 0) <> \
         EXISTS (SELECT 1 FROM cancels x WHERE x.task = t.seq)";
    assert_eq!(ask(flagged), 0, "running tasks whose flag and list do not agree");
    let check: String = conn.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
}
