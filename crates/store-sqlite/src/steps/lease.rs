//! What the holder of a running task says: that it lives, what came out so far, how far it is.

use std::time::Duration;

use poolwright_broker::{Error, Extension, Held};
use poolwright_core::text::error_text;
use rusqlite::{OptionalExtension, params};

use crate::error::Fault;
use crate::rows;
use crate::work::Work;

/// Makes the lease last so long from now.
pub(crate) fn extend(work: &mut Work<'_>, held: &Held, lease: Duration) -> rusqlite::Result<Extension> {
    let Some(queue) = work.queue(&held.key.queue)? else { return Ok(Extension::Lost) };
    let until = work.now + lease;
    let mut statement = work.conn.prepare_cached(
        "UPDATE tasks SET ord = ?4 WHERE queue = ?1 AND id = ?2 AND state = 1 AND token = ?3 RETURNING cancel",
    )?;
    let cancelled = statement
        .query_row(
            params![queue.seq, held.key.id.as_str(), held.token.to_bytes(), until.as_micros()],
            |row| row.get(0),
        )
        .optional()?;
    Ok(match cancelled {
        Some(false) => Extension::Kept(until),
        Some(true) => Extension::Cancelled(until),
        None => Extension::Lost,
    })
}

/// Keeps a result with the running task.
pub(crate) fn store_result(work: &mut Work<'_>, held: &Held, result: &[u8]) -> Result<(), Fault> {
    let seq = holder(work, held)?;
    let mut statement = work.conn.prepare_cached("UPDATE tasks SET result = ?2 WHERE seq = ?1")?;
    statement.execute(params![seq, result])?;
    Ok(())
}

/// Notes how far the running task is.
pub(crate) fn progress(work: &mut Work<'_>, held: &Held, done: f64, note: &str) -> Result<(), Fault> {
    let seq = holder(work, held)?;
    let done = if done.is_nan() { 0.0 } else { done.clamp(0.0, 1.0) };
    let mut statement = work.conn.prepare_cached(
        "UPDATE tasks SET progress = ?2, progress_note = ?3, progress_at = ?4 WHERE seq = ?1",
    )?;
    statement.execute(params![seq, done, error_text(note), work.now.as_micros()])?;
    Ok(())
}

/// The row of the task, when its present attempt presents this token.
fn holder(work: &mut Work<'_>, held: &Held) -> Result<i64, Fault> {
    let queue = work.queue(&held.key.queue)?;
    let found = queue.map(|queue| rows::find(work.conn, queue.seq, &held.key.id)).transpose()?.flatten();
    match found {
        None => Err(Error::NotFound { key: held.key.clone() }.into()),
        Some(task) if task.is_held_by(held.token) => Ok(task.seq),
        Some(_) => Err(Error::LeaseLost { key: held.key.clone() }.into()),
    }
}
