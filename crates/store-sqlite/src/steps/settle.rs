//! Settles one attempt: obeys the verdict, if the token is the present one.

use poolwright_broker::{Error, Held, Settled};
use poolwright_core::task::Failure;
use poolwright_core::text::error_text;
use poolwright_core::{Charge, Class, Settlement, State, Timestamp, When};
use rusqlite::params;

use crate::rows::{self, Brief, Charges, flag};
use crate::steps::{exit, queue, record};
use crate::token::{Parts, parts};
use crate::work::{Work, code};

/// One attempt, one outcome.
pub(crate) fn settle(
    work: &mut Work<'_>,
    held: &Held,
    settlement: &Settlement,
) -> rusqlite::Result<Result<Settled, Error>> {
    let not_found = || Error::NotFound { key: held.key.clone() };
    let Some(queue) = work.queue(&held.key.queue)? else { return Ok(Err(not_found())) };
    let at = work.now;
    if let Settlement::Complete { retain_for, .. } = settlement
        && retain_for.is_zero()
        && complete_plain(work, queue.seq, held)?
    {
        return Ok(Ok(Settled { state: None, at }));
    }
    let Some(task) = rows::find(work.conn, queue.seq, &held.key.id)? else { return Ok(Err(not_found())) };
    if !task.is_held_by(held.token) {
        // A settlement that was done before and comes again is answered by what the record shows.
        let again = task.state != State::Active && task.knows(held.token);
        let lost = Error::LeaseLost { key: held.key.clone() };
        return Ok(if again { Ok(Settled { state: Some(task.state), at }) } else { Err(lost) });
    }
    count(work, &task, settlement);
    let state = obey(work, &task, settlement)?;
    Ok(Ok(Settled { state, at }))
}

/// The usual end in one statement: a held task without lock, index entries, follow-up or large payload is gone.
fn complete_plain(work: &mut Work<'_>, queue: i64, held: &Held) -> rusqlite::Result<bool> {
    let Parts { seq, secret } = parts(held.token);
    let gone = work.hot.complete.execute(
        "DELETE FROM tasks WHERE seq = ?1 AND token = ?2 AND state = 1 AND flags = 0 AND id = ?3 AND queue = ?4",
        params![seq, secret, held.key.id.as_str(), queue],
    )? == 1;
    if gone {
        work.moved(queue, Some(State::Active), None);
        work.ended(queue, false);
    }
    Ok(gone)
}

fn count(work: &mut Work<'_>, task: &Brief, settlement: &Settlement) {
    match settlement {
        Settlement::Complete { .. } | Settlement::Discard => work.ended(task.queue, false),
        Settlement::Archive { .. } | Settlement::Retry { charge: Charge::Retry, .. } => {
            work.ended(task.queue, true);
        }
        Settlement::Retry { .. } | Settlement::Release | Settlement::Hold { .. } => {}
    }
}

fn obey(work: &mut Work<'_>, task: &Brief, settlement: &Settlement) -> rusqlite::Result<Option<State>> {
    match settlement {
        Settlement::Complete { retain_for, .. } if retain_for.is_zero() => {
            exit::give_way(work, task)?;
            Ok(None)
        }
        Settlement::Complete { retain_for, result } => {
            if exit::finish(work, task, State::Completed)? {
                let expires = work.now + *retain_for;
                let mut statement = work.conn.prepare_cached(
                    "UPDATE tasks SET state = 5, at = ?2, lease = NULL, flags = flags & ~?3, since = ?4, \
                     result = coalesce(?5, result) WHERE seq = ?1",
                )?;
                let (at, now) = (expires.as_micros(), work.now.as_micros());
                statement.execute(params![
                    task.seq,
                    at,
                    flag::LOCK | flag::CANCEL,
                    now,
                    result.as_deref()
                ])?;
            }
            Ok(Some(State::Completed))
        }
        Settlement::Retry { .. } => retry(work, task, settlement).map(Some),
        Settlement::Archive { error, class } => {
            if exit::finish(work, task, State::Archived)? {
                archive(work, task, *class, error)?;
            }
            Ok(Some(State::Archived))
        }
        Settlement::Discard => {
            exit::give_way(work, task)?;
            Ok(None)
        }
        Settlement::Release => release(work, task).map(Some),
        Settlement::Hold { reason } => {
            queue::hold(work, task.queue, reason)?;
            release(work, task).map(Some)
        }
    }
}

fn retry(work: &mut Work<'_>, task: &Brief, settlement: &Settlement) -> rusqlite::Result<State> {
    let Settlement::Retry { after, error, class, charge } = settlement else {
        unreachable!("only called with a retry");
    };
    let due = When::After(*after).due(work.now);
    let (state, at, pos, since) = match due {
        Some(due) => (State::Retry, Some(due.as_micros()), task.pos, None),
        None => (State::Pending, None, work.place(), Some(work.now.as_micros())),
    };
    exit::unlist(work, task)?;
    let mut statement = work.conn.prepare_cached(
        "UPDATE tasks SET state = ?2, at = ?3, lease = NULL, pos = ?4, since = ?5, charges = ?6, flags = flags & ~?7, \
         failure = ?8 WHERE seq = ?1",
    )?;
    statement.execute(params![
        task.seq,
        code(state),
        at,
        pos,
        since,
        charged(task.charges, *charge).to_column(),
        if *class == Class::Cancelled { flag::CANCEL } else { 0 },
        failure(*class, error, work.now),
    ])?;
    work.moved(task.queue, Some(State::Active), Some(state));
    Ok(state)
}

fn charged(charges: Charges, charge: Charge) -> Charges {
    let Charges { retried, deferrals, crashes } = charges;
    match charge {
        Charge::Retry => Charges { retried: retried.saturating_add(1), deferrals: 0, ..charges },
        Charge::Deferral => Charges { deferrals: deferrals.saturating_add(1), ..charges },
        Charge::Crash => Charges { crashes: crashes.saturating_add(1), ..charges },
        Charge::Nothing => charges,
    }
}

/// Writes what an archived record shows. Its lock was freed and its state counted by the caller.
pub(crate) fn archive(work: &Work<'_>, task: &Brief, class: Class, error: &str) -> rusqlite::Result<()> {
    let mut statement = work.conn.prepare_cached(
        "UPDATE tasks SET state = 4, at = ?2, lease = NULL, flags = flags & ~?3 | ?4, failure = ?5 WHERE seq = ?1",
    )?;
    let (now, gone) = (work.now.as_micros(), flag::LOCK | flag::CANCEL);
    statement.execute(params![task.seq, now, gone, flag::UNRECORDED, failure(class, error, work.now)])?;
    record::want(work, task.seq)
}

/// A failure as its column keeps it.
fn failure(class: Class, error: &str, at: Timestamp) -> String {
    let failure = Failure { class, error: error_text(error).into(), at };
    serde_json::to_string(&failure).expect("words, text and numbers are always JSON")
}

/// Back to where it was, as if it had not been claimed.
fn release(work: &mut Work<'_>, task: &Brief) -> rusqlite::Result<State> {
    exit::unlist(work, task)?;
    let mut statement =
        work.conn.prepare_cached("UPDATE tasks SET state = 0, lease = NULL WHERE seq = ?1")?;
    statement.execute([task.seq])?;
    work.returned(task.queue, task.pos)?;
    work.moved(task.queue, Some(State::Active), Some(State::Pending));
    Ok(State::Pending)
}
