//! Makes due tasks pending.

use poolwright_broker::Promoted;
use poolwright_core::{QueueName, State, Timestamp};
use rusqlite::params;

use crate::work::{Work, code, state_of};

/// Promotes in these queues, at most `limit` in all, and says when the next one is due.
pub(crate) fn promote_due(
    work: &mut Work<'_>,
    queues: &[QueueName],
    limit: u32,
) -> rusqlite::Result<Promoted> {
    let mut promoted = Promoted::default();
    for name in queues {
        let Some(queue) = work.queue(name)? else { continue };
        promoted.tasks += promote(work, queue.seq, limit - promoted.tasks)?;
        for waiting in [State::Scheduled, State::Retry] {
            let due = next_due(work, queue.seq, waiting)?;
            promoted.next_due = promoted.next_due.into_iter().chain(due).min();
        }
    }
    Ok(promoted)
}

/// The due tasks of both states, merged: earliest first, and by id where the times are equal.
const DUE: &str = "SELECT seq, state FROM ( \
     SELECT * FROM (SELECT seq, state, at, id FROM tasks \
         WHERE queue = ?1 AND state = 2 AND at <= ?2 ORDER BY at, id LIMIT ?3) \
     UNION ALL \
     SELECT * FROM (SELECT seq, state, at, id FROM tasks \
         WHERE queue = ?1 AND state = 3 AND at <= ?2 ORDER BY at, id LIMIT ?3)) \
     ORDER BY at, id LIMIT ?3";

fn promote(work: &mut Work<'_>, queue: i64, limit: u32) -> rusqlite::Result<u32> {
    let due = due(work, queue, limit)?;
    for (seq, state) in &due {
        let place = work.place();
        let mut statement = work
            .conn
            .prepare_cached("UPDATE tasks SET state = 0, at = NULL, pos = ?2, since = ?3 WHERE seq = ?1")?;
        statement.execute([*seq, place, work.now.as_micros()])?;
        work.moved(queue, Some(*state), Some(State::Pending));
    }
    Ok(u32::try_from(due.len()).unwrap_or(u32::MAX))
}

fn due(work: &Work<'_>, queue: i64, limit: u32) -> rusqlite::Result<Vec<(i64, State)>> {
    let mut statement = work.conn.prepare_cached(DUE)?;
    let rows = statement.query_map(params![queue, work.now.as_micros(), limit], |row| {
        Ok((row.get(0)?, state_of(row.get(1)?).unwrap_or(State::Retry)))
    })?;
    rows.collect()
}

fn next_due(work: &Work<'_>, queue: i64, state: State) -> rusqlite::Result<Option<Timestamp>> {
    let mut statement = work
        .conn
        .prepare_cached("SELECT min(at) FROM tasks WHERE queue = ?1 AND state = ?2 AND at IS NOT NULL")?;
    let due: Option<i64> = statement.query_row([queue, code(state)], |row| row.get(0))?;
    Ok(due.map(Timestamp::from_micros))
}
