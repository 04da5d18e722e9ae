//! The ways out of the store: every one frees the lock, clears the index, and takes along what hung on the task.

use poolwright_core::{State, UniqueLock};
use rusqlite::params;

use crate::rows::{About, Brief, flag};
use crate::steps::{follow, record, store};
use crate::work::Work;

/// Frees the task's lock, if it still is the task's. The caller clears the bit, or removes the row.
pub(crate) fn unlock(work: &Work<'_>, task: &Brief) -> rusqlite::Result<()> {
    if !task.has(flag::LOCK) {
        return Ok(());
    }
    // A lock that another task took after its time was over names the other one, and stays.
    if let Some(UniqueLock { key, .. }) = about(work, task.seq)?.unique {
        let mut statement =
            work.conn.prepare_cached("DELETE FROM locks WHERE queue = ?1 AND key = ?2 AND task = ?3")?;
        return statement.execute(params![task.queue, &*key, task.seq]).map(drop);
    }
    // What does not decode names no key: looked for among all locks of the queue.
    let mut statement = work.conn.prepare_cached("DELETE FROM locks WHERE queue = ?1 AND task = ?2")?;
    statement.execute([task.queue, task.seq]).map(drop)
}

/// What the task says of itself; nothing, where that does not decode.
fn about(work: &Work<'_>, seq: i64) -> rusqlite::Result<About> {
    let mut statement = work.conn.prepare_cached("SELECT about FROM tasks WHERE seq = ?1")?;
    statement.query_row([seq], |row| {
        let text = row.get_ref(0)?.as_str().ok();
        Ok(text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default())
    })
}

/// Removes the task with everything it has.
pub(crate) fn remove(work: &mut Work<'_>, task: &Brief) -> rusqlite::Result<()> {
    unlock(work, task)?;
    if task.has(flag::INDEXED) {
        unindex(work, task)?;
    }
    if task.has(flag::PAYLOAD) {
        work.conn.prepare_cached("DELETE FROM payloads WHERE task = ?1")?.execute([task.seq])?;
    }
    if task.has(flag::FOLLOW_UP) {
        follow::forget(work, task)?;
    }
    unlist(work, task)?;
    work.conn.prepare_cached("DELETE FROM tasks WHERE seq = ?1")?.execute([task.seq])?;
    work.moved(task.queue, Some(task.state), None);
    Ok(())
}

/// Strikes the task off the lists that only its present state has: running ones to cancel, archived ones to record. The
/// caller clears what of the bits must not stay.
pub(crate) fn unlist(work: &Work<'_>, task: &Brief) -> rusqlite::Result<()> {
    if task.has(flag::CANCEL) && task.state == State::Active {
        work.conn.prepare_cached("DELETE FROM cancels WHERE task = ?1")?.execute([task.seq])?;
    }
    if task.has(flag::UNRECORDED) {
        record::forget(work, task.seq)?;
    }
    Ok(())
}

/// Removes the task; its follow-up, if one waits, takes its place.
pub(crate) fn give_way(work: &mut Work<'_>, task: &Brief) -> rusqlite::Result<()> {
    let next = follow::take(work, task)?;
    remove(work, task)?;
    if let Some(mut next) = next {
        if let Some(lock) = &next.unique
            && store::holder(work, task.queue, &lock.key)?.is_some()
        {
            // It cannot be refused any more, since its enqueue was answered: without its lock it runs all the same.
            next.unique = None;
        }
        store::insert(work, task.queue, &next)?;
    }
    Ok(())
}

fn unindex(work: &Work<'_>, task: &Brief) -> rusqlite::Result<()> {
    // What does not decode leaves entries without a task, which nobody finds and `reconcile` removes.
    let About { subjects, scopes, .. } = about(work, task.seq)?;
    let mut statement = work
        .conn
        .prepare_cached("DELETE FROM subjects WHERE role = ?1 AND kind = ?2 AND id = ?3 AND task = ?4")?;
    for subject in subjects {
        statement.execute(params![0, &*subject.kind, &*subject.id, task.seq])?;
    }
    for scope in scopes {
        statement.execute(params![1, &*scope.kind, &*scope.id, task.seq])?;
    }
    Ok(())
}

/// Gives an ended task its last state, unless its follow-up takes its place. True when the record stays.
pub(crate) fn finish(work: &mut Work<'_>, task: &Brief, state: State) -> rusqlite::Result<bool> {
    if task.has(flag::FOLLOW_UP) {
        give_way(work, task)?;
        return Ok(false);
    }
    unlock(work, task)?;
    unlist(work, task)?;
    work.moved(task.queue, Some(task.state), Some(state));
    Ok(true)
}
