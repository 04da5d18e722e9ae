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

/// A wait of this length is told of: no transaction of this store takes so long, so somebody forgot one, or is stopped in
/// the middle of it.
pub(crate) const QUIET_MAX: Duration = Duration::from_secs(1);

/// How long, and when not at all.
#[derive(Debug, Clone)]
pub(crate) struct Patience {
    /// The file, for messages.
    pub(crate) file: Arc<str>,
    /// The longest wait for one lock.
    pub(crate) limit: Duration,
    /// The longest wait that is not told of. [`QUIET_MAX`], but for tests.
    pub(crate) quiet: Duration,
    /// Set when the store closes: waiting ends.
    pub(crate) closing: Arc<AtomicBool>,
    /// Set while something is tried that can as well be done later: a tenth of a second is enough.
    pub(crate) hurried: Arc<AtomicBool>,
    /// Spreads the looks of several processes.
    pub(crate) chance: Chance,
}

/// One wait for one lock.
pub(crate) struct Wait {
    since: Instant,
    looks: u32,
    told: bool,
}

impl Wait {
    /// Begins.
    pub(crate) fn begin() -> Self {
        Self { since: Instant::now(), looks: 0, told: false }
    }
}

impl Patience {
    /// Makes the connection wait like this.
    pub(crate) fn install(&self, conn: &mut Connection) -> rusqlite::Result<()> {
        let patience = self.clone();
        let mut wait = Wait::begin();
        conn.busy_handler(Some(move |looks: i32| {
            if looks == 0 {
                wait = Wait::begin();
            }
            patience.pause(&mut wait)
        }))
    }

    /// Waits a little before the next look; false, and at once, when it was waited long enough.
    pub(crate) fn pause(&self, wait: &mut Wait) -> bool {
        let hurried = self.hurried.load(Ordering::Relaxed);
        let limit = if hurried { self.limit.min(HURRIED_MAX) } else { self.limit };
        let waited = wait.since.elapsed();
        if waited >= limit || self.closing.load(Ordering::Relaxed) {
            return false;
        }
        if waited >= self.quiet && !wait.told {
            wait.told = true;
            let (file, at_most) = (&*self.file, limit);
            tracing::warn!(file, ?waited, ?at_most, "waiting for another process that holds the write lock");
        }
        // Short at first, because most locks are held for less than a millisecond.
        let longest_us = if wait.looks < 8 { 200.0 } else { 1_000.0 };
        wait.looks += 1;
        // Parked, not asleep: whoever closes the store can end it.
        thread::park_timeout(Duration::from_secs_f64(longest_us * (0.5 + self.chance.roll()) / 1e6));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::Mutex;
    use tracing_subscriber::fmt::MakeWriter;

    /// What was logged, as text.
    #[derive(Debug, Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Log {
        fn lines(&self) -> Vec<String> {
            let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
            text.lines().map(str::to_owned).collect()
        }
    }

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Log {
        type Writer = Self;
        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    #[test]
    fn a_long_wait_for_a_lock_is_told_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tasks.db");
        let [holder, mut waiter] = [(); 2].map(|()| Connection::open(&path).unwrap());
        let log = Log::default();
        let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false).finish();
        let patience = |quiet| Patience {
            file: "tasks.db".into(),
            limit: Duration::from_millis(20),
            quiet,
            closing: Arc::default(),
            hurried: Arc::default(),
            chance: Chance::seeded(1),
        };
        holder.execute_batch("BEGIN IMMEDIATE").unwrap();
        tracing::subscriber::with_default(subscriber, || {
            patience(QUIET_MAX).install(&mut waiter).unwrap();
            waiter.execute_batch("BEGIN IMMEDIATE").unwrap_err();
            assert_eq!(log.lines(), [""; 0], "a short wait is nobody's business");
            patience(Duration::ZERO).install(&mut waiter).unwrap();
            waiter.execute_batch("BEGIN IMMEDIATE").unwrap_err();
            waiter.execute_batch("BEGIN IMMEDIATE").unwrap_err();
        });
        let lines = log.lines();
        assert_eq!(lines.len(), 2, "one for each wait: {lines:?}");
        for line in lines {
            assert!(line.contains("WARN") && line.contains(r#"file="tasks.db""#), "{line}");
            assert!(line.contains("waiting for another process that holds the write lock"), "{line}");
        }
    }
}
