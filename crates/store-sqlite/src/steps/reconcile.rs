//! Mends what a fault or a foreign hand left behind: nothing here is needed while only this store writes the file.

use poolwright_broker::Reconciled;
use poolwright_core::QueueName;

use crate::work::{Ends, Work};

/// Entries that one reconciliation removes of each kind, so that it holds the file for a moment only.
const MENDED_MAX: i64 = 1_000;

/// Looks after these queues, and after the subject index of all.
pub(crate) fn reconcile(work: &mut Work<'_>, queues: &[QueueName]) -> rusqlite::Result<Reconciled> {
    let mut mended = Reconciled { index_entries: index_entries(work)?, ..Reconciled::default() };
    for name in queues {
        let Some(queue) = work.queue(name)? else { continue };
        mended.locks += locks(work, queue.seq)?;
        mended.leaseless += leaseless(work, queue.seq)?;
        front(work, name, queue.seq)?;
    }
    Ok(mended)
}

fn index_entries(work: &Work<'_>) -> rusqlite::Result<u64> {
    let mut statement = work.conn.prepare_cached(
        "DELETE FROM subjects WHERE (role, kind, id, task) IN (SELECT role, kind, id, task FROM subjects s \
         WHERE NOT EXISTS (SELECT 1 FROM tasks WHERE seq = s.task) LIMIT ?1)",
    )?;
    Ok(statement.execute([MENDED_MAX])? as u64)
}

fn locks(work: &Work<'_>, queue: i64) -> rusqlite::Result<u64> {
    let mut statement = work.conn.prepare_cached(
        "DELETE FROM locks WHERE queue = ?1 AND key IN (SELECT key FROM locks l WHERE queue = ?1 \
         AND NOT EXISTS (SELECT 1 FROM tasks WHERE seq = l.task) LIMIT ?2)",
    )?;
    Ok(statement.execute([queue, MENDED_MAX])? as u64)
}

/// An active task that nobody can hold: its lease ends now, so whoever looks for expired ones finds it.
fn leaseless(work: &mut Work<'_>, queue: i64) -> rusqlite::Result<u64> {
    let Ends { back, .. } = work.ends(queue)?;
    let mut statement = work.conn.prepare_cached(
        "UPDATE tasks SET lease = ?2 WHERE queue = ?1 AND at IS NULL AND pos < ?3 AND state = 1 AND token IS NULL \
         AND lease > ?2",
    )?;
    Ok(statement.execute([queue, work.now.as_micros(), back])? as u64)
}

/// A pending task before the front of its queue would never be claimed: the front goes back to it.
fn front(work: &mut Work<'_>, name: &QueueName, queue: i64) -> rusqlite::Result<()> {
    let Ends { front, .. } = work.ends(queue)?;
    let mut statement = work.conn.prepare_cached(
        "SELECT min(pos) FROM tasks WHERE queue = ?1 AND at IS NULL AND pos < ?2 AND state = 0",
    )?;
    let before: Option<i64> = statement.query_row([queue, front], |row| row.get(0))?;
    if let Some(place) = before {
        tracing::warn!(queue = %name, "pending tasks stood before the front of their queue, which was moved back");
        work.returned(queue, place)?;
        work.stir(queue);
    }
    Ok(())
}
