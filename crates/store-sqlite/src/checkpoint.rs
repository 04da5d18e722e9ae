//! When the write-ahead log is moved into the file, so that it neither grows without end nor costs every commit.
//!
//! ```text
//!   log of 16 MiB ──► moved ahead, while the writer goes on ──► what came meanwhile: much ──► moved ahead again
//!                                                                                    little ─► moved by the writer, and
//!                                                                                             the log begins anew
//! ```

mod ahead;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use rusqlite::Connection;
use rusqlite::hooks::Wal;

use crate::error::is_busy;
use ahead::{Ahead, Progress};

/// Pages in the log between two checkpoints: 16 MiB.
const PAGES_SOFT: i32 = 4_096;

/// Pages from which a checkpoint waits for readers, so that the log can begin anew: 128 MiB.
const PAGES_HARD: i32 = 32_768;

/// The writer moves so many pages itself: 1 MiB, a few milliseconds.
const PAGES_REST: i32 = 256;

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
    ahead: Ahead,
}

impl Checkpoints {
    /// Begins to watch. The second connection is for the same file, and used for nothing else.
    pub(crate) fn watch(
        conn: &mut Connection,
        second: Connection,
        file: Arc<str>,
        hurried: Arc<AtomicBool>,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let pages = Arc::new(AtomicI32::new(0));
        let shared = Arc::clone(&pages);
        conn.wal_hook(Some(move |_: &mut Wal, now: i32| {
            shared.store(now, Ordering::Relaxed);
            Ok(())
        }))?;
        let undone = Arc::new(AtomicBool::new(false));
        let shared = Arc::clone(&undone);
        conn.rollback_hook(Some(move || shared.store(true, Ordering::Relaxed)))?;
        Ok(Self { pages, undone, due: PAGES_SOFT, hurried, ahead: Ahead::start(second, file)? })
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
        match self.ahead.look() {
            Progress::Running => {}
            Progress::Moved(moved) if pages < PAGES_HARD && pages.saturating_sub(moved) > PAGES_REST => {
                self.ahead.begin();
            }
            Progress::Moved(_) | Progress::Failed => self.finish(conn, file, pages),
            Progress::Idle if pages >= PAGES_HARD => self.finish(conn, file, pages),
            Progress::Idle if pages >= self.due => self.ahead.begin(),
            // A log that began anew counts from the start again.
            Progress::Idle => self.due = self.due.min(pages.saturating_add(PAGES_SOFT)),
        }
    }

    /// Moves what is left. The patient form waits for readers to finish: without it, readers that overlap without a gap
    /// would let the log grow for ever.
    fn finish(&mut self, conn: &Connection, file: &str, pages: i32) {
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
        let [mut conn, second] = [(); 2].map(|()| Connection::open(dir.path().join("tasks.db")).unwrap());
        conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).unwrap();
        conn.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(())).unwrap();
        let mut checkpoints =
            Checkpoints::watch(&mut conn, second, "tasks.db".into(), Arc::default()).unwrap();
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

    #[test]
    fn the_log_of_a_writer_that_never_rests_does_not_grow_without_end() {
        let dir = tempfile::tempdir().unwrap();
        let [mut conn, second] = [(); 2].map(|()| Connection::open(dir.path().join("tasks.db")).unwrap());
        conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).unwrap();
        conn.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(())).unwrap();
        let mut checkpoints =
            Checkpoints::watch(&mut conn, second, "tasks.db".into(), Arc::default()).unwrap();
        conn.execute_batch("CREATE TABLE kept (x)").unwrap();
        let (mut most, mut written, mut began_anew) = (0, 0, 0);
        while written < 10 * PAGES_SOFT {
            let before = checkpoints.pages.load(Ordering::Relaxed);
            conn.execute("INSERT INTO kept VALUES (zeroblob(400000))", []).unwrap();
            let after = checkpoints.pages.load(Ordering::Relaxed);
            if after < before {
                began_anew += 1;
                written += after;
            } else {
                written += after - before;
            }
            most = most.max(after);
            checkpoints.run_if_due(&conn, "tasks.db");
        }
        assert!(began_anew > 0 && most < PAGES_HARD + 1_000, "{began_anew} times, at most {most} pages");
        let kept: i64 = conn
            .query_row("PRAGMA integrity_check", [], |row| Ok(i64::from(row.get::<_, String>(0)? == "ok")))
            .unwrap();
        assert_eq!(kept, 1);
    }
}
