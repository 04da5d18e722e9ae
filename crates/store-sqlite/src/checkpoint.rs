//! When the write-ahead log is moved into the file, so that it neither grows without end nor costs every commit.
//!
//! ```text
//!   log of 16 MiB ──► moved ahead, while the writer goes on ──► what came meanwhile: much ──► moved ahead again
//!                                                                                    little ─► moved by the writer, and
//!                                                                                             the log begins anew
//! ```
//!
//! A reader that stays keeps the log where it is, whoever tries. Then the next try waits until the log has grown by as much
//! again: it costs the writer a wait for each 16 MiB, not for each commit.

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
    /// How much of the log was in the file when that was last told.
    moved: i32,
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
        Ok(Self { pages, undone, due: PAGES_SOFT, moved: 0, hurried, ahead: Ahead::start(second, file)? })
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
            Progress::Moved(moved) if self.goes_on(moved, pages) => self.ahead.begin(),
            Progress::Moved(_) | Progress::Failed => self.finish(conn, file, pages),
            // A log that began anew counts from the start again.
            Progress::Idle if pages < self.due => self.due = self.due.min(pages.saturating_add(PAGES_SOFT)),
            Progress::Idle if pages >= PAGES_HARD => self.finish(conn, file, pages),
            Progress::Idle => {
                self.moved = 0;
                self.ahead.begin();
            }
        }
    }

    /// Much came meanwhile, and moving the log ahead once more would bring it further: no reader keeps it.
    const fn goes_on(&mut self, moved: i32, pages: i32) -> bool {
        let came_further = moved > self.moved;
        self.moved = moved;
        came_further && pages < PAGES_HARD && pages.saturating_sub(moved) > PAGES_REST
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
mod tests;
