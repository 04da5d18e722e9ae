//! Follow-ups: a task that was enqueued with `run_again` while its id was running, and waits for that run to end.

use bytes::Bytes;
use poolwright_core::NewTask;
use rusqlite::{OptionalExtension, params};

use crate::rows::{Brief, flag};
use crate::steps::quarantine;
use crate::work::Work;

/// Keeps the new task beside the running one, in place of an earlier follow-up.
pub(crate) fn keep(work: &Work<'_>, running: &Brief, task: &NewTask) -> rusqlite::Result<()> {
    // The payload has a column of its own: as JSON it would be several times as long.
    let slim = NewTask { payload: Bytes::new(), ..task.clone() };
    let body = serde_json::to_string(&slim).expect("a new task is always JSON");
    let mut statement = work
        .conn
        .prepare_cached("INSERT OR REPLACE INTO follow_ups (task, body, payload) VALUES (?1, ?2, ?3)")?;
    statement.execute(params![running.seq, body, &*task.payload])?;
    let mut statement = work.conn.prepare_cached("UPDATE tasks SET flags = flags | ?2 WHERE seq = ?1")?;
    statement.execute([running.seq, flag::FOLLOW_UP]).map(drop)
}

/// The follow-up of this task, if one waits. One that does not decode is set aside.
pub(crate) fn take(work: &Work<'_>, task: &Brief) -> rusqlite::Result<Option<NewTask>> {
    if !task.has(flag::FOLLOW_UP) {
        return Ok(None);
    }
    let mut statement = work.conn.prepare_cached("SELECT body, payload FROM follow_ups WHERE task = ?1")?;
    let found = statement.query_row([task.seq], |row| {
        let body = row.get_ref(0)?.as_bytes()?.to_vec();
        Ok((body, Bytes::from(row.get::<_, Vec<u8>>(1)?)))
    });
    let Some((body, payload)) = found.optional()? else { return Ok(None) };
    match serde_json::from_slice::<NewTask>(&body) {
        Ok(slim) => Ok(Some(NewTask { payload, ..slim })),
        Err(error) => {
            quarantine::note(work, task, &format!("its follow-up does not decode: {error}"), &body)?;
            Ok(None)
        }
    }
}

/// Drops the follow-up with its task.
pub(crate) fn forget(work: &Work<'_>, task: &Brief) -> rusqlite::Result<()> {
    work.conn.prepare_cached("DELETE FROM follow_ups WHERE task = ?1")?.execute([task.seq]).map(drop)
}
