//! Pages of one queue and state.
//!
//! Invariant: a page goes on from the place where the last one ended, not from a count, so that what comes or goes
//! meanwhile neither repeats nor hides what stays.

use poolwright_broker::{Cursor, Error, Page, PageRequest};
use poolwright_core::name::NAME_BYTES_MAX;
use poolwright_core::{State, TaskId, Timestamp};
use rusqlite::{Connection, params};

use super::{Seen, records, row_of};
use crate::error::Fault;
use crate::rows::{Stored, record_columns};
use crate::work::code;

/// The largest page.
const PAGE_MAX: u32 = 1_000;

/// What a list is ordered by, and its last element shown: a number, and the id where numbers are equal.
struct Place {
    rank: i64,
    id: String,
}

/// One page.
pub(crate) fn page(conn: &Connection, request: &PageRequest) -> Result<Seen<Page>, Fault> {
    let PageRequest { queue: name, state, after, limit } = request;
    let after = after.as_ref().map(|cursor| read(cursor, name.as_str(), *state)).transpose()?;
    let mut seen = Seen { value: Page::default(), poisons: Vec::new() };
    let Some(queue) = row_of(conn, name)? else { return Ok(seen) };
    let limit = (*limit).clamp(1, PAGE_MAX);
    let Place { rank, id } = after.unwrap_or_else(|| beginning(*state));
    let values = params![queue, code(*state), rank, id, limit + 1];
    let mut found = records(conn, name, list(*state), values, &mut seen.poisons)?;
    let more = found.len() + seen.poisons.len() > limit as usize;
    found.truncate(limit as usize);
    if let Some(last) = found.last().filter(|_| more) {
        seen.value.next = Some(cursor(last, name.as_str()));
    }
    seen.value.tasks = found.into_iter().map(|stored| stored.task).collect();
    Ok(seen)
}

/// Before everything, in the direction of the list.
fn beginning(state: State) -> Place {
    match rises(state) {
        true => Place { rank: i64::MIN, id: String::new() },
        // "Kept for ever" is the largest number, and its tasks have ids below this one, which is longer than an id.
        false => Place { rank: i64::MAX, id: "\u{10ffff}".repeat(NAME_BYTES_MAX / 4 + 1) },
    }
}

const fn rises(state: State) -> bool {
    matches!(state, State::Scheduled | State::Retry)
}

/// The statement of a list: queue, state, rank, id, limit. Each names its index's condition word for word.
const fn list(state: State) -> &'static str {
    match state {
        // Places are unique, so the id never decides.
        State::Pending => concat!(
            "SELECT ",
            record_columns!(),
            " FROM tasks WHERE queue = ?1 AND at IS NULL AND state = 0 AND ?2 = 0 AND pos < ?3 AND ?4 = ?4 ORDER BY pos DESC LIMIT ?5"
        ),
        // No index: what runs is as many as there are workers. Ordered by claim, which an extended lease keeps.
        State::Active => concat!(
            "SELECT ",
            record_columns!(),
            " FROM tasks WHERE queue = ?1 AND at IS NULL AND state = ?2 \
             AND pos < (SELECT back FROM queues WHERE seq = ?1) AND (started_at < ?3 OR (started_at = ?3 AND id < ?4)) ORDER BY started_at DESC, id DESC LIMIT ?5"
        ),
        State::Scheduled | State::Retry => concat!(
            "SELECT ",
            record_columns!(),
            " FROM tasks WHERE queue = ?1 AND state = ?2 AND at IS NOT NULL AND (at, id) > (?3, ?4) \
             ORDER BY at, id LIMIT ?5"
        ),
        State::Archived | State::Completed => concat!(
            "SELECT ",
            record_columns!(),
            " FROM tasks WHERE queue = ?1 AND state = ?2 AND at IS NOT NULL AND (at, id) < (?3, ?4) \
             ORDER BY at DESC, id DESC LIMIT ?5"
        ),
    }
}

fn cursor(last: &Stored, queue: &str) -> Cursor {
    let task = &last.task;
    let time = match task.state {
        State::Pending => None,
        State::Active => task.started_at,
        State::Scheduled | State::Retry => task.due,
        State::Archived => task.failed.as_ref().map(|failure| failure.at),
        State::Completed => task.expires_at,
    };
    let rank = time.map_or(last.pos, Timestamp::as_micros);
    Cursor(format!("{}.{rank}.{}.{queue}{}", task.state, queue.len(), task.key.id))
}

/// Reads a cursor that was made for this queue and state.
fn read(cursor: &Cursor, queue: &str, state: State) -> Result<Place, Error> {
    let parse = || {
        let rest = cursor.0.strip_prefix(state.as_str())?.strip_prefix('.')?;
        let (rank, rest) = rest.split_once('.')?;
        let (queue_bytes, rest) = rest.split_once('.')?;
        let (of_queue, id) = rest.split_at_checked(queue_bytes.parse().ok()?)?;
        TaskId::new(id).ok()?;
        (of_queue == queue).then_some(Place { rank: rank.parse().ok()?, id: id.to_owned() })
    };
    parse().ok_or_else(|| Error::BadCursor { given: cursor.0.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_of_another_list_is_none_of_this_one() {
        let place = read(&Cursor("retry.-7.5.a.b:cx.y".to_owned()), "a.b:c", State::Retry).unwrap();
        assert_eq!((place.rank, place.id.as_str()), (-7, "x.y"));
        for (given, state) in [
            ("retry.-7.5.a.b:cx.y", State::Scheduled),
            ("retry.-7.4.a.b:cx.y", State::Retry),
            ("retry.x.5.a.b:cx.y", State::Retry),
            ("retry.-7.99.a.b:c", State::Retry),
            ("retry.-7.5.a.b:c", State::Retry),
            ("", State::Retry),
        ] {
            assert!(read(&Cursor(given.to_owned()), "a.b:c", state).is_err(), "{given}");
        }
    }
}
