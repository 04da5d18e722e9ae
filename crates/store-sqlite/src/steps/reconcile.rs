//! Mends what a fault or a foreign hand left behind: nothing here is needed while only this store writes the file.

use poolwright_broker::Reconciled;
use poolwright_core::QueueName;

use crate::work::Work;

/// Entries that one reconciliation removes of each kind, so that it holds the file for a moment only.
const MENDED_MAX: i64 = 1_000;

/// Looks after these queues, and after the subject index of all.
pub(crate) fn reconcile(work: &mut Work<'_>, queues: &[QueueName]) -> rusqlite::Result<Reconciled> {
    let mut mended = Reconciled { index_entries: index_entries(work)?, ..Reconciled::default() };
    for name in queues {
        let Some(queue) = work.queue(name)? else { continue };
        mended.locks += locks(work, queue.seq)?;
        mended.leaseless += leaseless(work, queue.seq)?;
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
fn leaseless(work: &Work<'_>, queue: i64) -> rusqlite::Result<u64> {
    let mut statement = work.conn.prepare_cached(
        "UPDATE tasks SET at = ?2 WHERE queue = ?1 AND state = 1 AND state < 2 AND token IS NULL AND at > ?2",
    )?;
    Ok(statement.execute([queue, work.now.as_micros()])? as u64)
}
