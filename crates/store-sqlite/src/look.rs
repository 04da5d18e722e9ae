//! Looks: what the readers ask the file.
//!
//! Invariant: a look changes nothing. Rows that do not decode are left out and named, so that a step sets them aside.

use poolwright_broker::{
    DayStats, Find, Found, HISTORY_DAYS_MAX, Paused, Quarantined, QueueStats, ServerBeat,
};
use poolwright_core::{QueueName, State, TaskId, TaskKey, TaskRecord, Timestamp, TypeName};
use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use crate::error::Fault;
use crate::rows::{self, Stored, record_columns};
use crate::work::state_of;

mod page;

pub(crate) use page::page;

/// What was seen, and the rows on the way that do not decode.
pub(crate) struct Seen<T> {
    pub(crate) value: T,
    pub(crate) poisons: Vec<(QueueName, i64)>,
}

fn row_of(conn: &Connection, queue: &QueueName) -> rusqlite::Result<Option<i64>> {
    let mut statement = conn.prepare_cached("SELECT seq FROM queues WHERE name = ?1")?;
    statement.query_row([queue.as_str()], |row| row.get(0)).optional()
}

fn count(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    // A count that is negative would be a bug of ours; it must not make a screen fail.
    Ok(u64::try_from(row.get::<_, i64>(at)?).unwrap_or(0))
}

fn time(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(at)?.map(Timestamp::from_micros))
}

/// All queues that ever got a task.
pub(crate) fn queues(conn: &Connection) -> rusqlite::Result<Vec<QueueName>> {
    let mut statement =
        conn.prepare_cached("SELECT name FROM queues WHERE used AND name IS NOT NULL ORDER BY name")?;
    let names = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    Ok(names.into_iter().filter_map(|name| QueueName::new(name).ok()).collect())
}

/// One queue in numbers. No row is counted.
pub(crate) fn stats(conn: &Connection, queue: QueueName, day: i64) -> rusqlite::Result<QueueStats> {
    let mut statement = conn.prepare_cached(
        "SELECT seq, pending, active, scheduled, retry, archived, completed, processed, failed, paused_at, \
         coalesce(pause_reason, '') FROM queues WHERE name = ?1",
    )?;
    let found = statement.query_row([queue.as_str()], |row| {
        let since = time(row, 9)?;
        let reason = row.get(10)?;
        let stats = QueueStats {
            pending: count(row, 1)?,
            active: count(row, 2)?,
            scheduled: count(row, 3)?,
            retry: count(row, 4)?,
            archived: count(row, 5)?,
            completed: count(row, 6)?,
            processed: count(row, 7)?,
            failed: count(row, 8)?,
            paused: since.map(|since| Paused { reason, since }),
            ..QueueStats::empty(queue.clone())
        };
        Ok((row.get(0)?, stats))
    });
    let Some((seq, mut stats)) = found.optional()? else { return Ok(QueueStats::empty(queue)) };
    let DayStats { processed, failed, .. } = day_of(conn, seq, day)?;
    (stats.processed_today, stats.failed_today) = (processed, failed);
    stats.oldest_pending = conn
        .prepare_cached(
            "SELECT coalesce(since, enqueued_at) FROM tasks WHERE queue = ?1 AND at IS NULL AND state = 0 \
             AND pos >= (SELECT front FROM queues WHERE seq = ?1) ORDER BY pos LIMIT 1",
        )?
        .query_row([seq], |row| time(row, 0))
        .optional()?
        .flatten();
    stats.quarantined = conn
        .prepare_cached("SELECT count(*) FROM quarantine WHERE queue = ?1")?
        .query_row([seq], |row| count(row, 0))?;
    Ok(stats)
}

fn day_of(conn: &Connection, queue: i64, day: i64) -> rusqlite::Result<DayStats> {
    let mut statement =
        conn.prepare_cached("SELECT processed, failed FROM days WHERE queue = ?1 AND day = ?2")?;
    let found = statement.query_row([queue, day], |row| {
        Ok(DayStats { day, processed: count(row, 0)?, failed: count(row, 1)? })
    });
    Ok(found.optional()?.unwrap_or(DayStats { day, processed: 0, failed: 0 }))
}

/// The last days, today first.
pub(crate) fn history(
    conn: &Connection,
    queue: &QueueName,
    today: i64,
    days: u32,
) -> rusqlite::Result<Vec<DayStats>> {
    let queue = row_of(conn, queue)?;
    let days = (0..i64::from(days.min(HISTORY_DAYS_MAX))).map(|ago| today - ago);
    days.map(|day| match queue {
        Some(queue) => day_of(conn, queue, day),
        None => Ok(DayStats { day, processed: 0, failed: 0 }),
    })
    .collect()
}

/// One task.
pub(crate) fn get(conn: &Connection, key: &TaskKey) -> Result<Seen<Option<TaskRecord>>, Fault> {
    let mut seen = Seen { value: None, poisons: Vec::new() };
    if let Some(queue) = row_of(conn, &key.queue)? {
        let sql = concat!("SELECT ", record_columns!(), " FROM tasks WHERE id = ?2 AND queue = ?1");
        let found = records(conn, &key.queue, sql, params![queue, key.id.as_str()], &mut seen.poisons)?;
        seen.value = found.into_iter().next().map(|stored| stored.task);
    }
    Ok(seen)
}

/// The records of a statement over [`record_columns!`].
fn records(
    conn: &Connection,
    queue: &QueueName,
    sql: &str,
    params: impl Params,
    poisons: &mut Vec<(QueueName, i64)>,
) -> rusqlite::Result<Vec<Stored>> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        match rows::record(conn, row, queue) {
            Ok(stored) => found.push(stored),
            Err(poison) => poisons.push((queue.clone(), poison.seq)),
        }
    }
    Ok(found)
}

/// Archived tasks whose dead letter nobody has confirmed.
pub(crate) fn unrecorded(
    conn: &Connection,
    queues: &[QueueName],
    limit: u32,
) -> Result<Seen<Vec<TaskRecord>>, Fault> {
    let sql = concat!(
        "SELECT ",
        record_columns!(),
        " FROM tasks WHERE seq IN (SELECT task FROM unrecorded WHERE queue = ?1 ORDER BY failed_at, id LIMIT ?2) \
         ORDER BY at, id"
    );
    let mut seen = Seen { value: Vec::new(), poisons: Vec::new() };
    for name in queues {
        let left = limit - u32::try_from(seen.value.len()).unwrap_or(limit);
        let Some(queue) = row_of(conn, name)?.filter(|_| left > 0) else { continue };
        let found = records(conn, name, sql, params![queue, left], &mut seen.poisons)?;
        seen.value.extend(found.into_iter().map(|stored| stored.task));
    }
    Ok(seen)
}

/// Tasks of a subject or scope in all queues.
pub(crate) fn find(conn: &Connection, what: &Find, limit: u32) -> rusqlite::Result<Found> {
    let (role, kind, id) = match what {
        Find::Subject(subject) => (0, &subject.kind, &subject.id),
        Find::Scope(scope) => (1, &scope.kind, &scope.id),
    };
    let mut statement = conn.prepare_cached(
        "SELECT q.name, t.id, t.state, t.type FROM subjects s JOIN tasks t ON t.seq = s.task \
         JOIN queues q ON q.seq = t.queue \
         WHERE s.role = ?1 AND s.kind = ?2 AND s.id = ?3 AND q.name IS NOT NULL LIMIT ?4",
    )?;
    let mut rows = statement.query(params![role, &**kind, &**id, i64::from(limit) + 1])?;
    let mut found = Found { tasks: Vec::new(), complete: true };
    while let Some(row) = rows.next()? {
        if found.tasks.len() == limit as usize {
            found.complete = false;
            break;
        }
        match match_of(row) {
            Some(task) => found.tasks.push(task),
            // It is there, but cannot be named.
            None => found.complete = false,
        }
    }
    Ok(found)
}

fn match_of(row: &Row<'_>) -> Option<(TaskKey, State, TypeName)> {
    let text = |at: usize| row.get_ref(at).ok().and_then(|cell| cell.as_str().ok());
    let key = TaskKey::new(QueueName::new(text(0)?).ok()?, TaskId::new(text(1)?).ok()?);
    Some((key, state_of(row.get(2).ok()?)?, TypeName::new(text(3)?).ok()?))
}

/// The servers that live, by id.
pub(crate) fn servers(conn: &Connection, now: Timestamp) -> rusqlite::Result<Vec<ServerBeat>> {
    let mut statement = conn.prepare_cached("SELECT beat FROM servers WHERE until > ?1 ORDER BY id")?;
    let beats = statement.query_map([now.as_micros()], |row| row.get::<_, String>(0))?;
    // A beat of another version that does not decode is followed by one that does, or expires.
    Ok(beats
        .collect::<Result<Vec<_>, _>>()?
        .iter()
        .filter_map(|beat| serde_json::from_str(beat).ok())
        .collect())
}

/// What was set aside, latest first.
pub(crate) fn quarantine(
    conn: &Connection,
    name: QueueName,
    limit: u32,
) -> rusqlite::Result<Vec<Quarantined>> {
    let Some(queue) = row_of(conn, &name)? else { return Ok(Vec::new()) };
    let mut statement = conn.prepare_cached(
        "SELECT CAST(id AS BLOB), reason, raw, at FROM quarantine WHERE queue = ?1 ORDER BY seq DESC LIMIT ?2",
    )?;
    let entries = statement.query_map(params![queue, limit], |row| {
        Ok(Quarantined {
            queue: name.clone(),
            id: String::from_utf8_lossy(row.get_ref(0)?.as_blob()?).into_owned(),
            reason: row.get(1)?,
            raw: row.get::<_, Vec<u8>>(2)?.into(),
            at: Timestamp::from_micros(row.get(3)?),
        })
    })?;
    entries.collect()
}
