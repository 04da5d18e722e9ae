//! What the holder of a running task says: that it lives, what came out so far, how far it is.

use std::time::Duration;

use poolwright_broker::{Error, Extension, Held};
use poolwright_core::task::Progress;
use poolwright_core::text::error_text;
use rusqlite::{OptionalExtension, params};

use crate::error::Fault;
use crate::rows::{self, flag};
use crate::token::{Parts, parts};
use crate::work::Work;

/// Makes the lease last so long from now.
pub(crate) fn extend(work: &mut Work<'_>, held: &Held, lease: Duration) -> rusqlite::Result<Extension> {
    let Some(queue) = work.queue(&held.key.queue)? else { return Ok(Extension::Lost) };
    let (until, Parts { seq, secret }) = (work.now + lease, parts(held.token));
    let mut statement = work.conn.prepare_cached(
        "UPDATE tasks SET lease = ?5 WHERE seq = ?1 AND token = ?2 AND state = 1 AND id = ?3 AND queue = ?4 \
         RETURNING flags",
    )?;
    let flags = statement
        .query_row(params![seq, secret, held.key.id.as_str(), queue.seq, until.as_micros()], |row| {
            row.get::<_, i64>(0)
        })
        .optional()?;
    Ok(match flags {
        Some(flags) if flags & flag::CANCEL != 0 => Extension::Cancelled(until),
        Some(_) => Extension::Kept(until),
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
    let progress = Progress { done, note: error_text(note), at: work.now };
    let progress = serde_json::to_string(&progress).expect("text and finite numbers are always JSON");
    let mut statement = work.conn.prepare_cached("UPDATE tasks SET progress = ?2 WHERE seq = ?1")?;
    statement.execute(params![seq, progress])?;
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
