//! Remembers which archived tasks still want their dead letter stored.

use poolwright_broker::Held;

use crate::rows::{self, flag};
use crate::work::Work;

/// A task was archived: every entry into the archive wants a letter of its own.
pub(crate) fn want(work: &Work<'_>, seq: i64) -> rusqlite::Result<()> {
    let mut statement = work.conn.prepare_cached(
        "INSERT OR REPLACE INTO unrecorded (queue, failed_at, id, task) \
         SELECT queue, at, id, seq FROM tasks WHERE seq = ?1",
    )?;
    statement.execute([seq]).map(drop)
}

/// The dead letter of this task and attempt is stored. An unknown one is passed over.
pub(crate) fn mark_recorded(work: &mut Work<'_>, held: &Held) -> rusqlite::Result<()> {
    let Some(queue) = work.queue(&held.key.queue)? else { return Ok(()) };
    let found = rows::find(work.conn, queue.seq, &held.key.id)?;
    let Some(task) = found.filter(|task| task.has(flag::UNRECORDED) && task.knows(held.token)) else {
        return Ok(());
    };
    forget(work, task.seq)?;
    let mut statement = work.conn.prepare_cached("UPDATE tasks SET flags = flags & ~?2 WHERE seq = ?1")?;
    statement.execute([task.seq, flag::UNRECORDED]).map(drop)
}

/// The task leaves the archive, or has its letter.
pub(crate) fn forget(work: &Work<'_>, seq: i64) -> rusqlite::Result<()> {
    let mut statement = work.conn.prepare_cached(
        "DELETE FROM unrecorded WHERE (queue, failed_at, id) = (SELECT queue, at, id FROM tasks WHERE seq = ?1)",
    )?;
    statement.execute([seq]).map(drop)
}
