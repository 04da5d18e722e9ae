//! What people do to tasks by hand. Nothing here is counted, and nothing here touches a running task but its flag.

use poolwright_broker::{Bulk, BulkAction, CancelOutcome, Error};
use poolwright_core::{Class, State, TaskKey, When};
use rusqlite::params;

use crate::error::Fault;
use crate::rows::{self, Brief, Charges, INLINE_BYTES_MAX, brief_columns, flag};
use crate::steps::{exit, follow, settle, store};
use crate::token::secret;
use crate::work::{Work, code};

/// Tasks in one bulk step at most: about a tenth of a second of the writer.
const BULK_TASKS_MAX: u32 = 5_000;

/// The states that an action takes, and how its refusal says so.
pub(crate) struct Takes {
    states: &'static [State],
    wanted: &'static str,
}

const RUN_NOW: Takes = Takes {
    states: &[State::Scheduled, State::Retry, State::Archived, State::Completed],
    wanted: "only a scheduled, retry, archived or completed task can be run now",
};
const ARCHIVE: Takes = Takes {
    states: &[State::Pending, State::Scheduled, State::Retry, State::Completed],
    wanted: "only a pending, scheduled, retry or completed task can be archived",
};
const BULK_ARCHIVE: Takes =
    Takes { states: &[State::Pending, State::Scheduled, State::Retry], wanted: ARCHIVE.wanted };
const DELETE: Takes = Takes {
    states: &[State::Pending, State::Scheduled, State::Retry, State::Archived, State::Completed],
    wanted: "only a task that is not active can be deleted",
};
const CHANGE: Takes = Takes {
    states: &[State::Pending, State::Scheduled, State::Retry],
    wanted: "only a pending, scheduled or retry task can be changed",
};

/// The task, in a state that the action takes.
fn take(work: &mut Work<'_>, key: &TaskKey, takes: &Takes) -> Result<Brief, Fault> {
    let queue = work.queue(&key.queue)?;
    let found = queue.map(|queue| rows::find(work.conn, queue.seq, &key.id)).transpose()?.flatten();
    match found {
        None => Err(Error::NotFound { key: key.clone() }.into()),
        Some(task) if takes.states.contains(&task.state) => Ok(task),
        Some(task) => {
            Err(Error::WrongState { key: key.clone(), state: task.state, wanted: takes.wanted }.into())
        }
    }
}

/// Flags a task that waits or runs.
pub(crate) fn request_cancel(work: &mut Work<'_>, key: &TaskKey) -> rusqlite::Result<CancelOutcome> {
    let Some(queue) = work.queue(&key.queue)? else { return Ok(CancelOutcome::NotFound) };
    let Some(task) = rows::find(work.conn, queue.seq, &key.id)? else { return Ok(CancelOutcome::NotFound) };
    if task.state.is_finished() {
        return Ok(CancelOutcome::Finished);
    }
    if !task.has(flag::CANCEL) {
        let mut statement = work.conn.prepare_cached("UPDATE tasks SET flags = flags | ?2 WHERE seq = ?1")?;
        statement.execute([task.seq, flag::CANCEL])?;
        if task.state == State::Active {
            work.conn
                .prepare_cached("INSERT OR IGNORE INTO cancels (task) VALUES (?1)")?
                .execute([task.seq])?;
        }
    }
    Ok(if task.state == State::Active { CancelOutcome::Signalled } else { CancelOutcome::Flagged })
}

/// Makes a task pending, at the end of its queue; gives the state it was in.
pub(crate) fn run_now(work: &mut Work<'_>, key: &TaskKey) -> Result<State, Fault> {
    let task = take(work, key, &RUN_NOW)?;
    rerun(work, &task)?;
    Ok(task.state)
}

fn rerun(work: &mut Work<'_>, task: &Brief) -> rusqlite::Result<()> {
    exit::unlist(work, task)?;
    let place = work.place();
    let mut statement = work.conn.prepare_cached(
        "UPDATE tasks SET state = 0, at = NULL, pos = ?2, since = ?3, charges = ?4, flags = flags & ~?5, \
         token = NULL WHERE seq = ?1",
    )?;
    let gone = flag::CANCEL | flag::UNRECORDED;
    let charges = Charges { retried: task.charges.retried, ..Charges::default() };
    statement.execute(params![task.seq, place, work.now.as_micros(), charges.to_column(), gone])?;
    work.moved(task.queue, Some(task.state), Some(State::Pending));
    Ok(())
}

/// Archives a task by hand; gives the state it was in.
pub(crate) fn archive(work: &mut Work<'_>, key: &TaskKey, reason: &str) -> Result<State, Fault> {
    let task = take(work, key, &ARCHIVE)?;
    put_away(work, &task, reason)?;
    Ok(task.state)
}

fn put_away(work: &mut Work<'_>, task: &Brief, reason: &str) -> rusqlite::Result<()> {
    exit::unlock(work, task)?;
    if task.has(flag::FOLLOW_UP) {
        follow::forget(work, task)?;
    }
    settle::archive(work, task, Class::Operator, reason)?;
    // A token of its own, so that the dead letter of this end is not taken for that of an earlier one.
    let secret = secret(work.chance);
    let mut statement =
        work.conn.prepare_cached("UPDATE tasks SET token = ?2, flags = flags & ~?3 WHERE seq = ?1")?;
    statement.execute([task.seq, secret, flag::FOLLOW_UP])?;
    work.moved(task.queue, Some(task.state), Some(State::Archived));
    Ok(())
}

/// Deletes a task; gives the state it was in.
pub(crate) fn delete(work: &mut Work<'_>, key: &TaskKey) -> Result<State, Fault> {
    let task = take(work, key, &DELETE)?;
    exit::remove(work, &task)?;
    Ok(task.state)
}

/// The same for the first tasks of a state; gives how many.
pub(crate) fn bulk(work: &mut Work<'_>, bulk: &Bulk) -> rusqlite::Result<u64> {
    let takes = match bulk.action {
        BulkAction::RunNow => &RUN_NOW,
        BulkAction::Archive => &BULK_ARCHIVE,
        BulkAction::Delete => &DELETE,
    };
    let Some(queue) = work.queue(&bulk.queue)?.filter(|_| takes.states.contains(&bulk.state)) else {
        return Ok(0);
    };
    let tasks = first(work, queue.seq, bulk.state, bulk.limit.min(BULK_TASKS_MAX))?;
    for task in &tasks {
        match bulk.action {
            BulkAction::RunNow => rerun(work, task)?,
            BulkAction::Archive => put_away(work, task, &bulk.reason)?,
            BulkAction::Delete => exit::remove(work, task)?,
        }
    }
    Ok(tasks.len() as u64)
}

fn first(work: &Work<'_>, queue: i64, state: State, limit: u32) -> rusqlite::Result<Vec<Brief>> {
    // Two texts, because each index holds only its own tasks.
    let sql = match state {
        State::Pending => concat!(
            "SELECT ",
            brief_columns!(),
            " FROM tasks WHERE queue = ?1 AND at IS NULL AND state = 0 AND ?2 = 0 ORDER BY pos LIMIT ?3"
        ),
        _ => concat!(
            "SELECT ",
            brief_columns!(),
            " FROM tasks WHERE queue = ?1 AND state = ?2 AND at IS NOT NULL ORDER BY at, id LIMIT ?3"
        ),
    };
    let mut statement = work.conn.prepare_cached(sql)?;
    let tasks = statement.query_map(params![queue, code(state), limit], rows::brief)?;
    tasks.collect()
}

/// Gives a waiting task another due time.
pub(crate) fn reschedule(work: &mut Work<'_>, key: &TaskKey, when: When) -> Result<(), Fault> {
    let task = take(work, key, &CHANGE)?;
    let (state, at, pos, since) = match (when.due(work.now), task.state) {
        (None, State::Pending) => return Ok(()),
        (None, _) => (State::Pending, None, work.place(), Some(work.now.as_micros())),
        (Some(due), State::Retry) => (State::Retry, Some(due.as_micros()), task.pos, None),
        (Some(due), _) => (State::Scheduled, Some(due.as_micros()), task.pos, None),
    };
    let mut statement = work
        .conn
        .prepare_cached("UPDATE tasks SET state = ?2, at = ?3, pos = ?4, since = ?5 WHERE seq = ?1")?;
    statement.execute(params![task.seq, code(state), at, pos, since])?;
    work.moved(task.queue, Some(task.state), Some(state));
    Ok(())
}

/// Replaces the payload of a waiting task.
pub(crate) fn update_payload(work: &mut Work<'_>, key: &TaskKey, payload: &[u8]) -> Result<(), Fault> {
    let task = take(work, key, &CHANGE)?;
    let large = payload.len() > INLINE_BYTES_MAX;
    if large {
        store::keep_payload(work, task.seq, payload)?;
    } else if task.has(flag::PAYLOAD) {
        work.conn.prepare_cached("DELETE FROM payloads WHERE task = ?1")?.execute([task.seq])?;
    }
    let kept = task.flags & !flag::PAYLOAD | if large { flag::PAYLOAD } else { 0 };
    let mut statement =
        work.conn.prepare_cached("UPDATE tasks SET payload = ?2, flags = ?3 WHERE seq = ?1")?;
    statement.execute(params![task.seq, (!large).then_some(payload), kept])?;
    Ok(())
}
