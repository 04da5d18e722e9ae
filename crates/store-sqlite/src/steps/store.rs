//! Stores one new task: its row, its lock, its index entries, its large payload.

use poolwright_core::{NewTask, State, TaskId, Timestamp};
use rusqlite::{OptionalExtension, params};
use serde::Serialize;

use crate::rows::{INLINE_BYTES_MAX, extras, micros};
use crate::work::{Work, code};

/// Who holds this lock now, by row and id.
pub(crate) fn holder(work: &Work<'_>, queue: i64, key: &str) -> rusqlite::Result<Option<(i64, TaskId)>> {
    // A lock whose task is gone is free; a lock whose time is over is free although its task still lives.
    let mut statement = work.conn.prepare_cached(
        "SELECT l.task, t.id FROM locks l JOIN tasks t ON t.seq = l.task \
         WHERE l.queue = ?1 AND l.key = ?2 AND l.until > ?3",
    )?;
    let found = statement.query_row(params![queue, key, work.now.as_micros()], |row| {
        Ok((row.get(0)?, TaskId::new(row.get_ref(1)?.as_str()?)))
    });
    Ok(match found.optional()? {
        Some((seq, Ok(id))) => Some((seq, id)),
        // A holder whose id is none will be set aside by whoever reads it.
        Some((_, Err(_))) | None => None,
    })
}

/// Inserts the task and takes its lock, which the caller has seen to be free. None, and nothing changed, when its id
/// is taken.
pub(crate) fn insert(work: &mut Work<'_>, queue: i64, task: &NewTask) -> rusqlite::Result<Option<State>> {
    let due = task.when.due(work.now);
    let state = if due.is_some() { State::Scheduled } else { State::Pending };
    let seq = work.place();
    if !insert_row(work, seq, queue, task, (state, due))? {
        return Ok(None);
    }
    if let Some(lock) = &task.unique {
        let until = due.unwrap_or(work.now) + lock.lasts;
        let mut statement = work.conn.prepare_cached(
            "INSERT INTO locks (queue, key, task, until) VALUES (?1, ?2, ?3, ?4) \
             ON CONFLICT (queue, key) DO UPDATE SET task = excluded.task, until = excluded.until",
        )?;
        statement.execute(params![queue, &*lock.key, seq, until.as_micros()])?;
    }
    if is_indexed(task) {
        index(work, seq, task)?;
    }
    if task.payload.len() > INLINE_BYTES_MAX {
        keep_payload(work, seq, &task.payload)?;
    }
    work.moved(queue, None, Some(state));
    Ok(Some(state))
}

fn is_indexed(task: &NewTask) -> bool {
    !task.subjects.is_empty() || !task.scopes.is_empty()
}

fn insert_row(
    work: &Work<'_>,
    seq: i64,
    queue: i64,
    task: &NewTask,
    (state, due): (State, Option<Timestamp>),
) -> rusqlite::Result<bool> {
    let large = task.payload.len() > INLINE_BYTES_MAX;
    let extras = (if task.unique.is_some() { extras::LOCK } else { 0 })
        | (if is_indexed(task) { extras::INDEXED } else { 0 })
        | (if large { extras::PAYLOAD } else { 0 });
    let now = work.now.as_micros();
    let mut statement = work.conn.prepare_cached(
        "INSERT INTO tasks (seq, queue, id, state, ord, pos, extras, type, max_retry, timeout, retention, \
         deadline, enqueued_at, pending_since, tenant, unique_key, unique_lasts, headers, subjects, scopes, payload) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?1, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20) \
         ON CONFLICT (queue, id) DO NOTHING",
    )?;
    let changed = statement.execute(params![
        seq,
        queue,
        task.key.id.as_str(),
        code(state),
        due.map_or(seq, Timestamp::as_micros),
        extras,
        task.task_type.as_str(),
        task.max_retry,
        micros(task.timeout),
        micros(task.retention),
        task.deadline.map(Timestamp::as_micros),
        now,
        due.is_none().then_some(now),
        task.tenant.as_ref().map(|tenant| &*tenant.0),
        task.unique.as_ref().map(|lock| &*lock.key),
        task.unique.as_ref().map(|lock| micros(lock.lasts)),
        json(!task.headers.is_empty(), &task.headers),
        json(!task.subjects.is_empty(), &task.subjects),
        json(!task.scopes.is_empty(), &task.scopes),
        (!large).then_some(&*task.payload),
    ])?;
    Ok(changed == 1)
}

fn json<T: Serialize>(present: bool, value: &T) -> Option<String> {
    present.then(|| serde_json::to_string(value).expect("maps and lists of text are always JSON"))
}

fn index(work: &Work<'_>, seq: i64, task: &NewTask) -> rusqlite::Result<()> {
    // A subject that is named twice is one.
    let mut statement = work
        .conn
        .prepare_cached("INSERT OR IGNORE INTO subjects (role, kind, id, task) VALUES (?1, ?2, ?3, ?4)")?;
    for subject in &task.subjects {
        statement.execute(params![0, &*subject.kind, &*subject.id, seq])?;
    }
    for scope in &task.scopes {
        statement.execute(params![1, &*scope.kind, &*scope.id, seq])?;
    }
    Ok(())
}

/// Keeps a large payload in a row of its own.
pub(crate) fn keep_payload(work: &Work<'_>, seq: i64, payload: &[u8]) -> rusqlite::Result<()> {
    let mut statement =
        work.conn.prepare_cached("INSERT OR REPLACE INTO payloads (task, bytes) VALUES (?1, ?2)")?;
    statement.execute(params![seq, payload]).map(drop)
}
