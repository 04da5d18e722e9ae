//! Sets aside what does not decode, so that it is in nobody's way and still there to be looked at.

use poolwright_core::QueueName;
use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, params};
use serde_json::{Map, Value};

use crate::rows::{self, Brief, Poison, brief_columns, record_columns};
use crate::steps::exit;
use crate::work::Work;

/// Moves the row to the quarantine.
pub(crate) fn set_aside(work: &mut Work<'_>, poison: &Poison) -> rusqlite::Result<()> {
    let sql = concat!("SELECT ", brief_columns!(), " FROM tasks WHERE seq = ?1");
    let found = work.conn.prepare_cached(sql)?.query_row([poison.seq], rows::brief).optional()?;
    let Some(task) = found else { return Ok(()) };
    let raw = dump(work, poison.seq)?;
    note(work, &task, &poison.reason, raw.as_bytes())?;
    tracing::warn!(row = poison.seq, reason = %poison.reason, "a stored task does not decode and was set aside");
    exit::remove(work, &task)
}

/// Moves the row to the quarantine if it still does not decode: a reader came across it a moment ago.
pub(crate) fn recheck(work: &mut Work<'_>, queue: &QueueName, seq: i64) -> rusqlite::Result<()> {
    let sql = concat!("SELECT ", record_columns!(), " FROM tasks WHERE seq = ?1");
    let read = work
        .conn
        .prepare_cached(sql)?
        .query_row([seq], |row| Ok(rows::record(work.conn, row, queue).err()))
        .optional()?;
    match read.flatten() {
        Some(poison) => set_aside(work, &poison),
        None => Ok(()),
    }
}

/// Writes an entry about something of this task.
pub(crate) fn note(work: &Work<'_>, task: &Brief, reason: &str, raw: &[u8]) -> rusqlite::Result<()> {
    // The id is copied as it stands: it may be what is wrong.
    let mut statement = work.conn.prepare_cached(
        "INSERT INTO quarantine (queue, id, reason, raw, at) \
         SELECT queue, id, ?2, ?3, ?4 FROM tasks WHERE seq = ?1",
    )?;
    statement.execute(params![task.seq, reason, raw, work.now.as_micros()]).map(drop)
}

/// The row as JSON: every column that has a value; bytes as text where they are text, as hexadecimal otherwise.
fn dump(work: &Work<'_>, seq: i64) -> rusqlite::Result<String> {
    let mut statement = work.conn.prepare_cached(
        "SELECT t.*, p.bytes AS large_payload FROM tasks t LEFT JOIN payloads p ON p.task = t.seq WHERE t.seq = ?1",
    )?;
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    statement.query_row([seq], |row| {
        let mut columns = Map::new();
        for (at, name) in names.into_iter().enumerate() {
            let value = match row.get_ref(at)? {
                ValueRef::Null => continue,
                ValueRef::Integer(number) => number.into(),
                ValueRef::Real(number) => number.into(),
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => text_or_hex(bytes),
            };
            columns.insert(name, value);
        }
        Ok(Value::Object(columns).to_string())
    })
}

fn text_or_hex(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into(),
    }
}
