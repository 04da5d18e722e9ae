//! Queues as wholes: paused, resumed, held, removed.

use poolwright_broker::Error;
use poolwright_core::text::error_text;
use poolwright_core::{QueueName, State};
use rusqlite::{OptionalExtension, params};

use crate::error::Fault;
use crate::rows::{self, brief_columns};
use crate::steps::exit;
use crate::work::Work;

/// Rows of a removed queue that one step clears at most.
const CLEARED_MAX: usize = 1_000;

/// Stops claims; false when they were stopped already (then the reason is replaced, the time stays).
pub(crate) fn pause(work: &mut Work<'_>, name: &QueueName, reason: &str) -> rusqlite::Result<bool> {
    let queue = work.queue_or_new(name)?;
    let mut statement = work.conn.prepare_cached(
        "UPDATE queues SET paused_at = coalesce(paused_at, ?2), pause_reason = ?3 WHERE seq = ?1",
    )?;
    statement.execute(params![queue.seq, work.now.as_micros(), error_text(reason)])?;
    work.changed_queues();
    Ok(!queue.paused)
}

/// Stops claims for a reason that a handler gave; an earlier reason stays.
pub(crate) fn hold(work: &mut Work<'_>, queue: i64, reason: &str) -> rusqlite::Result<()> {
    let mut statement = work.conn.prepare_cached(
        "UPDATE queues SET paused_at = ?2, pause_reason = ?3 WHERE seq = ?1 AND paused_at IS NULL",
    )?;
    if statement.execute(params![queue, work.now.as_micros(), error_text(reason)])? == 1 {
        work.changed_queues();
    }
    Ok(())
}

/// Allows claims again; false when they were allowed.
pub(crate) fn resume(work: &mut Work<'_>, name: &QueueName) -> rusqlite::Result<bool> {
    let Some(queue) = work.queue(name)?.filter(|queue| queue.paused) else { return Ok(false) };
    let mut statement =
        work.conn.prepare_cached("UPDATE queues SET paused_at = NULL, pause_reason = NULL WHERE seq = ?1")?;
    statement.execute([queue.seq])?;
    work.changed_queues();
    work.stir(queue.seq);
    Ok(true)
}

/// Removes a queue in one small step, whatever its size: its row loses its name, and with it everything that hangs on
/// the row is nobody's. [`clear_removed`] takes it away afterwards. Gives the number of tasks.
pub(crate) fn remove(work: &mut Work<'_>, name: &QueueName, force: bool) -> Result<u64, Fault> {
    let no_queue = || Fault::Said(Error::NoQueue { queue: name.clone() });
    let queue = work.queue(name)?.ok_or_else(no_queue)?;
    if !work.is_used(queue.seq)? {
        return Err(no_queue());
    }
    let counts = work.counts(queue.seq)?;
    let tasks = counts.iter().sum();
    let active = counts[State::Active as usize];
    if active > 0 || (tasks > 0 && !force) {
        return Err(Error::NotEmpty { queue: name.clone(), tasks, active }.into());
    }
    work.conn.prepare_cached("UPDATE queues SET name = NULL WHERE seq = ?1")?.execute([queue.seq])?;
    work.changed_queues();
    Ok(tasks)
}

/// Clears a part of what removed queues left. True when more is left.
pub(crate) fn clear_removed(work: &mut Work<'_>) -> rusqlite::Result<bool> {
    let mut statement = work.conn.prepare_cached("SELECT seq FROM queues WHERE name IS NULL LIMIT 1")?;
    let Some(queue) = statement.query_row([], |row| row.get::<_, i64>(0)).optional()? else {
        return Ok(false);
    };
    drop(statement);
    // Two halves, because each index holds only its own tasks.
    let sql = concat!(
        "SELECT ",
        brief_columns!(),
        " FROM tasks WHERE queue = ?1 AND at IS NULL UNION ALL SELECT ",
        brief_columns!(),
        " FROM tasks WHERE queue = ?1 AND at IS NOT NULL LIMIT ?2"
    );
    let tasks: Vec<_> = work
        .conn
        .prepare_cached(sql)?
        .query_map(params![queue, CLEARED_MAX as i64], rows::brief)?
        .collect::<Result<_, _>>()?;
    for task in &tasks {
        exit::remove(work, task)?;
    }
    if tasks.len() == CLEARED_MAX {
        return Ok(true);
    }
    for table in ["locks", "days", "quarantine"] {
        work.conn.prepare_cached(&format!("DELETE FROM {table} WHERE queue = ?1"))?.execute([queue])?;
    }
    work.conn.prepare_cached("DELETE FROM queues WHERE seq = ?1")?.execute([queue])?;
    work.forget(queue);
    // There may be another one.
    Ok(true)
}
