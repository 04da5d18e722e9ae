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
        Ok(Self { pages, due: PAGES_SOFT, hurried })
    }

    /// Moves the log into the file when it has grown enough. Called when all callers are answered.
    pub(crate) fn run_if_due(&mut self, conn: &Connection, file: &str) {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.due {
            // A log that began anew counts from the start again.
            self.due = self.due.min(pages.saturating_add(PAGES_SOFT));
            return;
        }
        // The patient form waits for readers to finish: without it, readers that overlap without a gap would let the
        // log grow for ever.
        let mode = if pages < PAGES_HARD { "PASSIVE" } else { "RESTART" };
        self.hurried.store(true, Ordering::Relaxed);
        let done = conn.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(()));
        self.hurried.store(false, Ordering::Relaxed);
        if let Err(error) = done
            && !is_busy(&error)
        {
            tracing::warn!(%error, file, "checkpoint failed; it is tried again when the log has grown");
        }
        self.due = pages.saturating_add(PAGES_SOFT);
    }
}
