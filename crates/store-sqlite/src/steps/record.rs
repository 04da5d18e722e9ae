//! Remembers which archived tasks have their dead letter stored.

use poolwright_broker::Held;
use rusqlite::params;

use crate::work::Work;

/// The dead letter of this task and attempt is stored. An unknown one is passed over.
pub(crate) fn mark_recorded(work: &mut Work<'_>, held: &Held) -> rusqlite::Result<()> {
    let Some(queue) = work.queue(&held.key.queue)? else { return Ok(()) };
    let mut statement = work.conn.prepare_cached(
        "UPDATE tasks SET recorded = 1 WHERE queue = ?1 AND id = ?2 AND state = 4 AND token = ?3",
    )?;
    statement.execute(params![queue.seq, held.key.id.as_str(), held.token.to_bytes()]).map(drop)
}
