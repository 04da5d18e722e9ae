//! When the write-ahead log is moved into the file, so that it neither grows without end nor costs every commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use rusqlite::Connection;
use rusqlite::hooks::Wal;

use crate::error::is_busy;

/// Pages in the log between two checkpoints: 16 MiB.
const PAGES_SOFT: i32 = 4_096;

/// Pages from which a checkpoint waits for readers, so that the log can begin anew: 128 MiB.
const PAGES_HARD: i32 = 32_768;

/// Watches the log of one connection.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    /// Set by SQLite after each commit.
    pages: Arc<AtomicI32>,
    /// Set by SQLite when a transaction was undone.
    undone: Arc<AtomicBool>,
    /// The length at which the next checkpoint is tried.
    due: i32,
    /// Shortens waiting for locks while set: callers are waiting for the writer.
    hurried: Arc<AtomicBool>,
}

impl Checkpoints {
    /// Begins to watch.
    pub(crate) fn watch(conn: &mut Connection, hurried: Arc<AtomicBool>) -> rusqlite::Result<Self> {
        let pages = Arc::new(AtomicI32::new(0));
        let shared = Arc::clone(&pages);
        conn.wal_hook(Some(move |_: &mut Wal, now: i32| {
            shared.store(now, Ordering::Relaxed);
            Ok(())
        }))?;
        let undone = Arc::new(AtomicBool::new(false));
        let shared = Arc::clone(&undone);
        conn.rollback_hook(Some(move || shared.store(true, Ordering::Relaxed)))?;
        Ok(Self { pages, undone, due: PAGES_SOFT, hurried })
    }

    /// Moves the log into the file when it has grown enough. Called when all callers are answered.
    pub(crate) fn run_if_due(&mut self, conn: &Connection, file: &str) {
        let pages = self.pages.load(Ordering::Relaxed);
        if self.undone.swap(false, Ordering::Relaxed) {
            // Perhaps because the disk is full and the log cannot grow. Once it is in the file, it begins anew and needs no
            // more room than it has: then tasks can end although nothing can be added.
            if let Err(error) = self.run(conn, "PASSIVE") {
                tracing::debug!(%error, file, "after an undone transaction the log stays as it is");
            }
            return;
        }
        if pages < self.due {
            // A log that began anew counts from the start again.
            self.due = self.due.min(pages.saturating_add(PAGES_SOFT));
            return;
        }
        // The patient form waits for readers to finish: without it, readers that overlap without a gap would let the
        // log grow for ever.
        let mode = if pages < PAGES_HARD { "PASSIVE" } else { "RESTART" };
        if let Err(error) = self.run(conn, mode)
            && !is_busy(&error)
        {
            tracing::warn!(%error, file, "checkpoint failed; it is tried again when the log has grown");
        }
        self.due = pages.saturating_add(PAGES_SOFT);
    }

    fn run(&self, conn: &Connection, mode: &str) -> rusqlite::Result<()> {
        self.hurried.store(true, Ordering::Relaxed);
        let done = conn.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(()));
        self.hurried.store(false, Ordering::Relaxed);
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_an_undone_transaction_the_log_begins_anew() {
        let dir = tempfile::tempdir().unwrap();
        let mut conn = Connection::open(dir.path().join("tasks.db")).unwrap();
        conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).unwrap();
        conn.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(())).unwrap();
        let mut checkpoints = Checkpoints::watch(&mut conn, Arc::default()).unwrap();
        let mut pages_after = |sql: &str| {
            conn.execute_batch(sql).unwrap();
            let pages = checkpoints.pages.load(Ordering::Relaxed);
            checkpoints.run_if_due(&conn, "tasks.db");
            pages
        };
        pages_after("CREATE TABLE kept (x)");
        let grown = pages_after("INSERT INTO kept VALUES (zeroblob(100000))");
        assert!(pages_after("INSERT INTO kept VALUES (1)") > grown, "a short log goes on");
        pages_after("BEGIN; INSERT INTO kept VALUES (2); ROLLBACK");
        assert!(pages_after("INSERT INTO kept VALUES (3)") < grown, "the room it has is used again");
        let kept: i64 = conn.query_row("SELECT count(*) FROM kept", [], |row| row.get(0)).unwrap();
        assert_eq!(kept, 3);
    }
}
