//! Submits tasks: for each the id is checked, then the lock; then it is stored.

use poolwright_broker::{Enqueued, Error, How};
use poolwright_core::{NewTask, OnConflict, State, TaskKey};

use crate::rows::{self, Brief, flag};
use crate::steps::store::ROWS_AT_ONCE;
use crate::steps::{exit, follow, store};
use crate::work::Work;

type Outcome = Result<Enqueued, Error>;

/// One outcome each, in order. A refused task leaves no trace.
pub(crate) fn enqueue(work: &mut Work<'_>, tasks: &[&NewTask]) -> rusqlite::Result<Vec<Outcome>> {
    let mut outcomes = Vec::with_capacity(tasks.len());
    let mut rest = tasks;
    while !rest.is_empty() {
        let together = rest.get(..ROWS_AT_ONCE).filter(|tasks| tasks.iter().all(|task| is_plain(task)));
        match together {
            Some(plain) => many(work, plain, &mut outcomes)?,
            None => outcomes.push(one(work, rest[0])?),
        }
        rest = &tasks[outcomes.len()..];
    }
    Ok(outcomes)
}

/// A task that is stored or refused by its id alone, and changes nothing else: so the order within a group is kept.
fn is_plain(task: &NewTask) -> bool {
    task.unique.is_none() && task.on_conflict == OnConflict::Reject
}

fn many(work: &mut Work<'_>, tasks: &[&NewTask], outcomes: &mut Vec<Outcome>) -> rusqlite::Result<()> {
    let mut rows = Vec::with_capacity(tasks.len());
    for &task in tasks {
        rows.push((work.queue_or_new(&task.key.queue)?.seq, task));
    }
    for (state, (queue, task)) in store::insert_many(work, &rows)?.into_iter().zip(&rows) {
        outcomes.push(match state {
            Some(state) => Ok(taken(task, state, How::Stored)),
            None => Err(duplicate(work, *queue, task)?),
        });
    }
    Ok(())
}

fn duplicate(work: &Work<'_>, queue: i64, task: &NewTask) -> rusqlite::Result<Error> {
    let old = rows::find(work.conn, queue, &task.key.id)?;
    Ok(old.map_or_else(
        || unfindable(task),
        |old| Error::DuplicateId { key: task.key.clone(), state: old.state },
    ))
}

fn one(work: &mut Work<'_>, task: &NewTask) -> rusqlite::Result<Outcome> {
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
    let waits_to_be_discarded = old.has(flag::CANCEL) && old.state != State::Active;
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

fn store(work: &mut Work<'_>, queue: i64, task: &NewTask, old: Option<&Brief>) -> rusqlite::Result<Outcome> {
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
    let state = store::insert(work, queue, task)?;
    Ok(state.map(|state| taken(task, state, how)).ok_or_else(|| unfindable(task)))
}

/// Not to be reached: the index says that the id is taken, and no row has it.
fn unfindable(task: &NewTask) -> Error {
    Error::Corrupt { what: format!("the id {} is taken by a row that cannot be found", task.key) }
}

fn taken(task: &NewTask, state: State, how: How) -> Enqueued {
    Enqueued { key: task.key.clone(), state, how }
}
