//! Moves most of the log while the writer goes on: a thread with a connection of its own.
//!
//! A checkpoint waits for the disk, ten milliseconds and more for a log of 16 MiB. SQLite lets a second connection do that
//! while the first one appends; only the frames that come meanwhile are left, and those are soon moved.
//!
//! Invariant: it never waits for anybody's lock, and it holds none that a writer needs.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use rusqlite::Connection;

use crate::error::is_busy;

/// Nobody asked, or what was asked for was taken note of.
const IDLE: i32 = -1;
/// At work.
const RUNNING: i32 = -2;
/// It failed, or somebody else was at it.
const FAILED: i32 = -3;

/// How the thread stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// It can be started.
    Idle,
    /// Not done yet.
    Running,
    /// So many pages of the log are in the file. Told once.
    Moved(i32),
    /// Nothing was moved. Told once.
    Failed,
}

/// The way to the thread. Dropping it ends the thread and waits for that.
#[derive(Debug)]
pub(super) struct Ahead {
    state: Arc<AtomicI32>,
    /// One order at a time; none once it ends.
    orders: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ahead {
    /// Starts the thread on this connection.
    pub(super) fn start(conn: Connection, file: Arc<str>) -> std::io::Result<Self> {
        let state = Arc::new(AtomicI32::new(IDLE));
        let (orders, taken) = sync_channel(1);
        let here = Arc::clone(&state);
        let thread =
            Builder::new().name("sqlite-log".to_owned()).spawn(move || serve(&conn, &file, &taken, &here))?;
        Ok(Self { state, orders: Some(orders), thread: Some(thread) })
    }

    /// Begins, if it is idle.
    pub(super) fn begin(&self) {
        let was = self.state.compare_exchange(IDLE, RUNNING, Ordering::AcqRel, Ordering::Acquire);
        if let (Ok(_), Some(orders)) = (was, &self.orders) {
            // It has room: the thread has taken the last order, or it would not be idle. If it has died nothing is moved
            // ahead, and the writer does it all.
            if orders.try_send(()).is_err() {
                self.state.store(FAILED, Ordering::Release);
            }
        }
    }

    /// How it stands. What it tells once makes it idle again.
    pub(super) fn look(&self) -> Progress {
        match self.state.load(Ordering::Acquire) {
            IDLE => Progress::Idle,
            // One that has died at its work says nothing any more: the log must not wait for it for ever.
            RUNNING if self.thread.as_ref().is_none_or(JoinHandle::is_finished) => {
                self.state.store(IDLE, Ordering::Release);
                Progress::Failed
            }
            RUNNING => Progress::Running,
            told => {
                self.state.store(IDLE, Ordering::Release);
                if told == FAILED { Progress::Failed } else { Progress::Moved(told) }
            }
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // A panic there was told on stderr, and nothing depends on the thread.
            let _ = thread.join();
        }
    }
}

fn serve(conn: &Connection, file: &str, orders: &Receiver<()>, state: &AtomicI32) {
    while orders.recv().is_ok() {
        let moved = conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get::<_, i32>(2));
        if let Err(error) = &moved
            && !is_busy(error)
        {
            tracing::debug!(%error, file, "the log was not moved ahead");
        }
        let told = moved.ok().filter(|moved| *moved >= 0).unwrap_or(FAILED);
        state.store(told, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_died_at_its_work_is_not_waited_for() {
        let thread = std::thread::spawn(|| {});
        while !thread.is_finished() {
            std::thread::yield_now();
        }
        let (orders, taken) = sync_channel(1);
        drop(taken);
        let state = Arc::new(AtomicI32::new(RUNNING));
        let ahead = Ahead { state, orders: Some(orders), thread: Some(thread) };
        assert_eq!((ahead.look(), ahead.look()), (Progress::Failed, Progress::Idle));
        ahead.begin();
        assert_eq!((ahead.look(), ahead.look()), (Progress::Failed, Progress::Idle), "nor is it asked again");
    }
}
