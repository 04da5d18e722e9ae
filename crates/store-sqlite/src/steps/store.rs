//! Stores new tasks: their rows, locks, index entries and large payloads.

use std::sync::LazyLock;

use poolwright_core::{NewTask, State, TaskId, Timestamp};
use rusqlite::types::ToSql;
use rusqlite::{OptionalExtension, params, params_from_iter};

use crate::rows::{About, INLINE_BYTES_MAX, Limits, flag};
use crate::work::{Work, code};

/// Rows that one statement inserts: beginning, ending and opening four trees for each costs as much as the row itself.
pub(crate) const ROWS_AT_ONCE: usize = 16;

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
    let seq = work.place();
    let row = Row::of(seq, queue, task, work.now);
    let values: [&dyn ToSql; ROW_WIDTH] = row.values();
    if work.hot.insert.execute(ONE.as_str(), values)? == 0 {
        return Ok(None);
    }
    let state = row.state;
    attach(work, seq, queue, task)?;
    work.moved(queue, None, Some(state));
    Ok(Some(state))
}

/// Inserts [`ROWS_AT_ONCE`] tasks; for each the state, or none where its id is taken. The first of two equal ones wins.
pub(crate) fn insert_many(
    work: &mut Work<'_>,
    tasks: &[(i64, &NewTask)],
) -> rusqlite::Result<Vec<Option<State>>> {
    debug_assert_eq!(tasks.len(), ROWS_AT_ONCE, "the statement has as many rows");
    let first = work.places(tasks.len());
    let rows: Vec<Row<'_>> =
        (first..).zip(tasks).map(|(seq, (queue, task))| Row::of(seq, *queue, task, work.now)).collect();
    let values = rows.iter().flat_map(Row::values);
    let stored = work.hot.insert_many.execute(MANY.as_str(), params_from_iter(values))?;
    let mut states: Vec<Option<State>> = rows.iter().map(|row| Some(row.state)).collect();
    if stored < tasks.len() {
        strike_out(work, first, &mut states)?;
    }
    for ((seq, (queue, task)), state) in (first..).zip(tasks).zip(&states) {
        if state.is_some() {
            attach(work, seq, *queue, task)?;
            work.moved(*queue, None, *state);
        }
    }
    Ok(states)
}

/// Finds out which rows were not stored: their numbers follow one another.
fn strike_out(work: &Work<'_>, first: i64, states: &mut [Option<State>]) -> rusqlite::Result<()> {
    let mut statement = work.conn.prepare_cached("SELECT 1 FROM tasks WHERE seq = ?1")?;
    for (seq, state) in (first..).zip(states) {
        if !statement.exists([seq])? {
            *state = None;
        }
    }
    Ok(())
}

static ONE: LazyLock<String> = LazyLock::new(|| insertion(1));
static MANY: LazyLock<String> = LazyLock::new(|| insertion(ROWS_AT_ONCE));

/// The statement for so many rows. A row's place is its number.
fn insertion(rows: usize) -> String {
    let row = |nth: usize| {
        let parameter = |at: usize| format!("?{}", nth * ROW_WIDTH + at + 1);
        let values: Vec<String> = (0..ROW_WIDTH).map(parameter).collect();
        format!("({}, {})", parameter(0), values.join(", "))
    };
    format!(
        "INSERT INTO tasks (pos, seq, queue, id, state, at, flags, type, limits, enqueued_at, about, payload) \
         VALUES {} ON CONFLICT (id, queue) DO NOTHING",
        (0..rows).map(row).collect::<Vec<_>>().join(", ")
    )
}

/// Values that an insertion binds for a row.
const ROW_WIDTH: usize = 11;

/// A new row, in the order of the parameters of [`insertion`].
struct Row<'t> {
    state: State,
    seq: i64,
    queue: i64,
    id: &'t str,
    code: i64,
    at: Option<i64>,
    flags: i64,
    task_type: &'t str,
    limits: String,
    now: i64,
    about: Option<String>,
    payload: Option<&'t [u8]>,
}

impl<'t> Row<'t> {
    fn of(seq: i64, queue: i64, task: &'t NewTask, now: Timestamp) -> Self {
        let due = task.when.due(now);
        let state = if due.is_some() { State::Scheduled } else { State::Pending };
        let large = task.payload.len() > INLINE_BYTES_MAX;
        let bit = |has: bool, bit: i64| if has { bit } else { 0 };
        Self {
            state,
            seq,
            queue,
            id: task.key.id.as_str(),
            code: code(state),
            at: due.map(Timestamp::as_micros),
            flags: bit(task.unique.is_some(), flag::LOCK)
                | bit(is_indexed(task), flag::INDEXED)
                | bit(large, flag::PAYLOAD),
            task_type: task.task_type.as_str(),
            limits: limits(task).to_column(),
            now: now.as_micros(),
            about: About::of(task).to_column(),
            payload: (!large).then_some(&*task.payload),
        }
    }

    fn values(&self) -> [&dyn ToSql; ROW_WIDTH] {
        [
            &self.seq,
            &self.queue,
            &self.id,
            &self.code,
            &self.at,
            &self.flags,
            &self.task_type,
            &self.limits,
            &self.now,
            &self.about,
            &self.payload,
        ]
    }
}

fn limits(task: &NewTask) -> Limits {
    let &NewTask { max_retry, timeout, retention, deadline, .. } = task;
    Limits { max_retry, timeout, retention, deadline }
}

fn is_indexed(task: &NewTask) -> bool {
    !task.subjects.is_empty() || !task.scopes.is_empty()
}

/// Writes what hangs on a new row in other tables.
fn attach(work: &Work<'_>, seq: i64, queue: i64, task: &NewTask) -> rusqlite::Result<()> {
    if let Some(lock) = &task.unique {
        let until = task.when.due(work.now).unwrap_or(work.now) + lock.lasts;
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
    Ok(())
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
