//! Submits one task: the id is checked, then the lock; then it is stored.

use poolwright_broker::{Enqueued, Error, How};
use poolwright_core::{NewTask, OnConflict, State, TaskKey};

use crate::rows::{self, Brief};
use crate::steps::{exit, follow, store};
use crate::work::Work;

/// One task, one outcome. A refused task leaves no trace.
pub(crate) fn enqueue(work: &mut Work<'_>, task: &NewTask) -> rusqlite::Result<Result<Enqueued, Error>> {
    let queue = work.queue_or_new(&task.key.queue)?.seq;
    if task.unique.is_none() {
        // The usual case in one statement: the index on ids is the check.
        if let Some(state) = store::insert(work, queue, task)? {
            return Ok(Ok(taken(task, state, How::Stored)));
        }
    }
    let Some(old) = rows::find(work.conn, queue, &task.key.id)? else {
        return store(work, queue, task, None);
    };
    let waits_to_be_discarded = old.cancel && old.state != State::Active;
    match task.on_conflict {
        OnConflict::ReplaceFinished if old.state.is_finished() => store(work, queue, task, Some(&old)),
        OnConflict::RunAgain if old.state.is_finished() || waits_to_be_discarded => {
            store(work, queue, task, Some(&old))
        }
        OnConflict::RunAgain if old.state == State::Active => {
            follow::keep(work, &old, task)?;
            Ok(Ok(taken(task, old.state, How::RunsAgain)))
        }
        OnConflict::RunAgain => Ok(Ok(taken(task, old.state, How::Coalesced))),
        OnConflict::Reject | OnConflict::ReplaceFinished => {
            Ok(Err(Error::DuplicateId { key: task.key.clone(), state: old.state }))
        }
    }
}

fn store(
    work: &mut Work<'_>,
    queue: i64,
    task: &NewTask,
    old: Option<&Brief>,
) -> rusqlite::Result<Result<Enqueued, Error>> {
    if let Some(lock) = &task.unique
        && let Some((seq, id)) = store::holder(work, queue, &lock.key)?
        && old.is_none_or(|old| old.seq != seq)
    {
        let holder = TaskKey::new(task.key.queue.clone(), id);
        return Ok(Err(Error::DuplicateUnique { holder }));
    }
    if let Some(old) = old {
        exit::remove(work, old)?;
    }
    let how = if old.is_some() { How::Replaced } else { How::Stored };
    Ok(match store::insert(work, queue, task)? {
        Some(state) => Ok(taken(task, state, how)),
        // Not to be reached: the id was free a moment ago, in this transaction.
        None => Err(Error::Corrupt { what: format!("the id {} is taken by a row that cannot be found", task.key) }),
    })
}

fn taken(task: &NewTask, state: State, how: How) -> Enqueued {
    Enqueued { key: task.key.clone(), state, how }
}
