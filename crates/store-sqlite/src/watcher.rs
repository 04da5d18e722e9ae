//! Hears what other processes wrote: looks at the file's data version while somebody in this process waits, and does so only
//! when the log has changed.
//!
//! Invariant: it only rings. Whoever is rung asks the file; a ring too many costs one empty claim.

mod log;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use poolwright_broker::Cancel;
use poolwright_core::{QueueName, TaskId, TaskKey};
use rusqlite::Connection;

use crate::bells::Bells;
use crate::thread::Thread;
use crate::work::Woken;
use log::Log;

/// Starts the thread on this connection to this file.
pub(crate) fn start(
    conn: Connection,
    file: &Path,
    bells: Arc<Bells>,
    interval: Duration,
) -> std::io::Result<Thread> {
    let log = Log::of(file);
    Thread::spawn("sqlite-watch", move || {
        let flagged = HashSet::new();
        let mut watcher = Watcher { conn, log, bells, version: None, flagged, ailing: false };
        while watcher.bells.rest(interval) {
            watcher.look();
        }
    })
}

struct Watcher {
    conn: Connection,
    log: Log,
    bells: Arc<Bells>,
    /// The data version at the last look. It changes with every commit of every other connection.
    version: Option<i64>,
    /// Flagged attempts that were announced already, by key and the token's secret.
    flagged: HashSet<(TaskKey, i64)>,
    /// The last look failed; said once.
    ailing: bool,
}

impl Watcher {
    fn look(&mut self) {
        // Somebody may have begun to listen for cancellations since the last look; nothing of those was missed, because who
        // begins to listen asks for the flags of what runs.
        if !self.log.may_have_changed() {
            return;
        }
        match self.try_look() {
            Ok(()) => self.ailing = false,
            Err(error) if !self.ailing => {
                self.ailing = true;
                tracing::warn!(%error, "cannot see what other processes write; it is tried again");
            }
            Err(_) => {}
        }
    }

    fn try_look(&mut self) -> rusqlite::Result<()> {
        let version = self.conn.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        if self.version == Some(version) {
            return Ok(());
        }
        self.hear_work()?;
        if self.bells.has_feeds() {
            self.hear_cancels()?;
        }
        self.version = Some(version);
        Ok(())
    }

    fn hear_work(&self) -> rusqlite::Result<()> {
        let mut statement =
            self.conn.prepare_cached("SELECT seq, name, wake FROM queues WHERE name NOT NULL")?;
        let mut rows = statement.query([])?;
        let mut woken = Vec::new();
        while let Some(row) = rows.next()? {
            // A name that is none cannot be watched either.
            if let Ok(name) = QueueName::new(row.get_ref(1)?.as_str()?) {
                woken.push(Woken { queue: row.get(0)?, name, wake: row.get(2)? });
            }
        }
        self.bells.ring(&woken);
        Ok(())
    }

    fn hear_cancels(&mut self) -> rusqlite::Result<()> {
        let mut statement = self.conn.prepare_cached(
            "SELECT q.name, t.id, coalesce(t.token, 0) FROM cancels c CROSS JOIN tasks t ON t.seq = c.task \
             JOIN queues q ON q.seq = t.queue WHERE t.state = 1 AND q.name IS NOT NULL",
        )?;
        let mut rows = statement.query([])?;
        let mut flagged = HashSet::new();
        while let Some(row) = rows.next()? {
            let names = (QueueName::new(row.get_ref(0)?.as_str()?), TaskId::new(row.get_ref(1)?.as_str()?));
            let (Ok(queue), Ok(id)) = names else { continue };
            let attempt = (TaskKey::new(queue, id), row.get(2)?);
            if !self.flagged.contains(&attempt) {
                self.bells.publish(Cancel { key: attempt.0.clone() });
            }
            flagged.insert(attempt);
        }
        self.flagged = flagged;
        Ok(())
    }
}
