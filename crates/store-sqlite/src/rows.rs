//! Rows of `tasks`: whole ones as records, and the few columns by which a step decides.
//!
//! Invariant: whatever stands in a row, reading it gives a record or says what is wrong with it; it never fails the
//! step that came across it.

mod numbers;

use std::time::Duration;

use bytes::Bytes;
use poolwright_core::task::{Failure, Progress};
use poolwright_core::{
    Headers, NewTask, QueueName, Scope, State, Subject, TaskId, TaskKey, TaskRecord, Tenant, Timestamp,
    Token, TypeName, UniqueLock,
};
use rusqlite::types::{FromSql, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::token::{Parts, parts, token};
use crate::work::state_of;
pub(crate) use numbers::{Charges, Limits};

/// Payloads above this many bytes have a row of their own: a row of `tasks` should fit in a page of 4 KiB.
pub(crate) const INLINE_BYTES_MAX: usize = 2_048;

/// The bits of the column `flags`: what hangs on a task in other tables, and whether its end was asked for.
pub(crate) mod flag {
    /// It may hold a lock.
    pub(crate) const LOCK: i64 = 1;
    /// Its subjects and scopes are indexed.
    pub(crate) const INDEXED: i64 = 2;
    /// A follow-up waits for its end.
    pub(crate) const FOLLOW_UP: i64 = 4;
    /// Its payload has a row of its own.
    pub(crate) const PAYLOAD: i64 = 8;
    /// It is archived, and its dead letter is not known to be stored.
    pub(crate) const UNRECORDED: i64 = 16;
    /// Somebody asked for its end. While it is active it has a row in `cancels`, too.
    pub(crate) const CANCEL: i64 = 32;
}

/// The columns that [`claimable`] reads, in its order: what a claim does not write anew.
macro_rules! claimable_columns {
    () => {
        "seq, pos, flags, id, type, limits, charges, enqueued_at, about, failure, result, payload"
    };
}
pub(crate) use claimable_columns;

/// The columns that [`record`] reads, in its order.
macro_rules! record_columns {
    () => {
        "seq, pos, flags, id, type, limits, charges, enqueued_at, about, failure, result, payload, \
         state, at, lease, since, started_at, token, progress"
    };
}
pub(crate) use record_columns;

/// A task read whole.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    /// Its row.
    pub(crate) seq: i64,
    /// Its last place in the queue.
    pub(crate) pos: i64,
    /// What hangs on it, see [`flag`].
    pub(crate) flags: i64,
    /// The record.
    pub(crate) task: TaskRecord,
}

/// A row that is no task.
#[derive(Debug, Clone)]
pub(crate) struct Poison {
    /// The row.
    pub(crate) seq: i64,
    /// What is wrong with it.
    pub(crate) reason: String,
}

/// Reads a row of [`record_columns!`].
pub(crate) fn record(conn: &Connection, row: &Row<'_>, queue: &QueueName) -> Result<Stored, Poison> {
    let cells = &mut Cells { row, at: 0 };
    let whole =
        decode(conn, cells, queue, &mut Memo::default()).and_then(|stored| decode_rest(cells, stored));
    whole.map_err(|reason| poison(row, reason))
}

/// Reads a row of [`claimable_columns!`]. What they do not say is as a fresh task has it.
pub(crate) fn claimable(
    conn: &Connection,
    row: &Row<'_>,
    queue: &QueueName,
    memo: &mut Memo,
) -> Result<Stored, Poison> {
    decode(conn, &mut Cells { row, at: 0 }, queue, memo).map_err(|reason| poison(row, reason))
}

/// What the last row said that the next one probably says again: the tasks of a queue are of few types, with the limits of
/// their type.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    task_type: Option<TypeName>,
    limits: Option<(String, Limits)>,
}

impl Memo {
    fn task_type(&mut self, text: &str) -> Result<TypeName, String> {
        match &self.task_type {
            Some(known) if known.as_str() == text => Ok(known.clone()),
            _ => {
                let read = TypeName::new(text).map_err(|e| e.to_string())?;
                Ok(self.task_type.insert(read).clone())
            }
        }
    }

    fn limits(&mut self, text: &str) -> Result<Limits, String> {
        match &self.limits {
            Some((known, limits)) if known == text => Ok(*limits),
            _ => {
                let read = Limits::read(text)?;
                self.limits = Some((text.to_owned(), read));
                Ok(read)
            }
        }
    }
}

fn poison(row: &Row<'_>, reason: String) -> Poison {
    Poison { seq: row.get(0).unwrap_or_default(), reason }
}

fn decode(
    conn: &Connection,
    cells: &mut Cells<'_, '_>,
    queue: &QueueName,
    memo: &mut Memo,
) -> Result<Stored, String> {
    let (seq, pos, flags) = (cells.get("seq")?, cells.get("pos")?, cells.get("flags")?);
    let id = TaskId::new(cells.text("id")?).map_err(|e| e.to_string())?;
    let (task_type, limits) = (memo.task_type(cells.text("type")?)?, memo.limits(cells.text("limits")?)?);
    let charges = cells.optional_text("charges")?.map_or(Ok(Charges::default()), Charges::read)?;
    let enqueued_at = cells.time("enqueued_at")?.ok_or("enqueued_at is missing")?;
    let About { headers, subjects, scopes, tenant, unique } = cells.json("about")?.unwrap_or_default();
    let failed = cells.json::<Failure>("failure")?;
    let result = cells.get::<Option<Vec<u8>>>("result")?.map(Bytes::from);
    let payload = payload(conn, cells, seq)?;
    let task = TaskRecord {
        key: TaskKey::new(queue.clone(), id),
        task_type,
        state: State::Pending,
        payload,
        headers,
        max_retry: limits.max_retry,
        retried: charges.retried,
        deferrals: charges.deferrals,
        crashes: charges.crashes,
        timeout: limits.timeout,
        deadline: limits.deadline,
        retention: limits.retention,
        unique,
        subjects,
        scopes,
        tenant,
        enqueued_at,
        pending_since: Some(enqueued_at),
        due: None,
        started_at: None,
        lease_until: None,
        token: None,
        failed,
        completed_at: None,
        expires_at: None,
        result,
        progress: None,
        cancel_requested: flags & flag::CANCEL != 0,
        runs_again: flags & flag::FOLLOW_UP != 0,
    };
    Ok(Stored { seq, pos, flags, task })
}

fn decode_rest(cells: &mut Cells<'_, '_>, stored: Stored) -> Result<Stored, String> {
    let state = state_of(cells.get("state")?).ok_or("its state is no state")?;
    let (at, lease) = (cells.time("at")?, cells.time("lease")?);
    let (since, started_at) = (cells.time("since")?, cells.time("started_at")?);
    let token = cells.get::<Option<i64>>("token")?.map(|secret| token(Parts { seq: stored.seq, secret }));
    let progress = cells.json::<Progress>("progress")?;
    let only = |wanted: State, time: Option<Timestamp>| time.filter(|_| state == wanted);
    let task = TaskRecord {
        state,
        pending_since: only(State::Pending, since.or(stored.task.pending_since)),
        due: at.filter(|_| matches!(state, State::Scheduled | State::Retry)),
        started_at: only(State::Active, started_at),
        lease_until: only(State::Active, lease),
        token,
        completed_at: only(State::Completed, since),
        expires_at: only(State::Completed, at),
        progress,
        ..stored.task
    };
    Ok(Stored { task, ..stored })
}

/// What only people and handlers read of a task, as the column `about` keeps it.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct About {
    #[serde(skip_serializing_if = "Headers::is_empty")]
    pub(crate) headers: Headers,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) subjects: Vec<Subject>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) scopes: Vec<Scope>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tenant: Option<Tenant>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unique: Option<UniqueLock>,
}

impl About {
    /// What a new task says.
    pub(crate) fn of(task: &NewTask) -> Self {
        Self {
            headers: task.headers.clone(),
            subjects: task.subjects.clone(),
            scopes: task.scopes.clone(),
            tenant: task.tenant.clone(),
            unique: task.unique.clone(),
        }
    }

    /// The column; none when there is nothing to say.
    pub(crate) fn to_column(&self) -> Option<String> {
        let silent = self.headers.is_empty()
            && self.subjects.is_empty()
            && self.scopes.is_empty()
            && self.tenant.is_none()
            && self.unique.is_none();
        (!silent).then(|| serde_json::to_string(self).expect("maps and lists of text are always JSON"))
    }
}

fn payload(conn: &Connection, cells: &mut Cells<'_, '_>, seq: i64) -> Result<Bytes, String> {
    if let Some(inline) = cells.get::<Option<Vec<u8>>>("payload")? {
        return Ok(inline.into());
    }
    let large = conn
        .prepare_cached("SELECT bytes FROM payloads WHERE task = ?1")
        .and_then(|mut statement| statement.query_row([seq], |row| row.get::<_, Vec<u8>>(0)).optional());
    match large {
        Ok(Some(bytes)) => Ok(bytes.into()),
        Ok(None) => Err("its payload is missing".to_owned()),
        Err(error) => Err(format!("its payload cannot be read: {error}")),
    }
}

/// Reads cells from left to right, naming the one that is wrong.
struct Cells<'r, 's> {
    row: &'r Row<'s>,
    at: usize,
}

impl<'r> Cells<'r, '_> {
    fn next(&mut self, name: &str) -> Result<ValueRef<'r>, String> {
        let value = self.row.get_ref(self.at).map_err(|e| format!("{name}: {e}"));
        self.at += 1;
        value
    }

    fn get<T: FromSql>(&mut self, name: &str) -> Result<T, String> {
        T::column_result(self.next(name)?).map_err(|e| format!("{name}: {e}"))
    }

    fn text(&mut self, name: &str) -> Result<&'r str, String> {
        self.next(name)?.as_str().map_err(|e| format!("{name}: {e}"))
    }

    fn optional_text(&mut self, name: &str) -> Result<Option<&'r str>, String> {
        self.next(name)?.as_str_or_null().map_err(|e| format!("{name}: {e}"))
    }

    fn time(&mut self, name: &str) -> Result<Option<Timestamp>, String> {
        Ok(self.get::<Option<i64>>(name)?.map(Timestamp::from_micros))
    }

    fn json<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, String> {
        let text = self.optional_text(name)?;
        text.map(|text| serde_json::from_str(text).map_err(|e| format!("{name}: {e}"))).transpose()
    }
}

/// A duration out of a column of microseconds.
pub(crate) fn duration(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

/// A duration as a column keeps it: microseconds; what does not fit is longer than anybody lives.
pub(crate) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// The few columns by which a step decides.
#[derive(Debug, Clone)]
pub(crate) struct Brief {
    /// Its row.
    pub(crate) seq: i64,
    /// Its queue's row.
    pub(crate) queue: i64,
    /// Its state.
    pub(crate) state: State,
    /// Its last place in the queue.
    pub(crate) pos: i64,
    /// What hangs on it, see [`flag`].
    pub(crate) flags: i64,
    /// The secret of the present or last attempt's token.
    pub(crate) secret: Option<i64>,
    /// What its attempts have used.
    pub(crate) charges: Charges,
}

impl Brief {
    /// The present attempt presents this token.
    pub(crate) fn is_held_by(&self, token: Token) -> bool {
        self.state == State::Active && self.knows(token)
    }

    /// This is the token of its present or last attempt.
    pub(crate) fn knows(&self, token: Token) -> bool {
        let Parts { seq, secret } = parts(token);
        self.seq == seq && self.secret == Some(secret)
    }

    /// It has this flag.
    pub(crate) const fn has(&self, flag: i64) -> bool {
        self.flags & flag != 0
    }
}

/// The columns that [`brief`] reads, in its order.
macro_rules! brief_columns {
    () => {
        "seq, queue, state, pos, flags, token, charges"
    };
}
pub(crate) use brief_columns;

/// Reads a row of [`brief_columns!`]. The schema's checks leave nothing that does not decode, but for charges that a foreign
/// hand wrote: they count as none here, and set the task aside where it is read whole.
pub(crate) fn brief(row: &Row<'_>) -> rusqlite::Result<Brief> {
    let code: i64 = row.get(2)?;
    let out_of_range = rusqlite::Error::IntegralValueOutOfRange(2, code);
    Ok(Brief {
        seq: row.get(0)?,
        queue: row.get(1)?,
        state: state_of(code).ok_or(out_of_range)?,
        pos: row.get(3)?,
        flags: row.get(4)?,
        secret: row.get(5)?,
        charges: row
            .get_ref(6)?
            .as_str_or_null()
            .ok()
            .flatten()
            .and_then(|t| Charges::read(t).ok())
            .unwrap_or_default(),
    })
}

/// The task with this id, if it is there.
pub(crate) fn find(conn: &Connection, queue: i64, id: &TaskId) -> rusqlite::Result<Option<Brief>> {
    let sql = concat!("SELECT ", brief_columns!(), " FROM tasks WHERE id = ?2 AND queue = ?1");
    conn.prepare_cached(sql)?.query_row((queue, id.as_str()), brief).optional()
}
