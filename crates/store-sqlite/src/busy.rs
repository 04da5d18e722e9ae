//! Waiting while another process writes.
//!
//! SQLite's own handler sleeps up to 100 ms at a time, which would cost a second process most of its turns; a write
//! transaction here takes a millisecond or two, so looking again after about one is right.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use poolwright_core::Chance;
use rusqlite::Connection;

/// The longest wait for what can be done later.
const HURRIED_MAX: Duration = Duration::from_millis(100);

/// How long, and when not at all.
#[derive(Debug, Clone)]
pub(crate) struct Patience {
    /// The longest wait for one lock.
    pub(crate) limit: Duration,
    /// Set when the store closes: waiting ends.
    pub(crate) closing: Arc<AtomicBool>,
    /// Set while something is tried that can as well be done later: a tenth of a second is enough.
    pub(crate) hurried: Arc<AtomicBool>,
    /// Spreads the looks of several processes.
    pub(crate) chance: Chance,
}

impl Patience {
    /// Makes the connection wait like this.
    pub(crate) fn install(&self, conn: &mut Connection) -> rusqlite::Result<()> {
        let patience = self.clone();
        let mut since = Instant::now();
        conn.busy_handler(Some(move |looks: i32| {
            if looks == 0 {
                since = Instant::now();
            }
            let hurried = patience.hurried.load(Ordering::Relaxed);
            let limit = if hurried { patience.limit.min(HURRIED_MAX) } else { patience.limit };
            let again = since.elapsed() < limit && !patience.closing.load(Ordering::Relaxed);
            if again {
                patience.pause(looks);
            }
            again
        }))
    }

    /// One pause: short at first, because most locks are held for less than a millisecond.
    pub(crate) fn pause(&self, looks: i32) {
        let longest_us = if looks < 8 { 200.0 } else { 1_000.0 };
        // Parked, not asleep: whoever closes the store can end it.
        thread::park_timeout(Duration::from_secs_f64(longest_us * (0.5 + self.chance.roll()) / 1e6));
    }
}
