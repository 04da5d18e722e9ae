//! Numbers and pages of a queue.
//!
//! Invariant: a page goes on from the place where the last one ended, not from a count, so that what comes or goes
//! meanwhile neither repeats nor hides what stays.

use std::ops::Bound;

use poolwright_broker::{Cursor, Error, Page, QueueStats};
use poolwright_core::{State, TaskId, Timestamp};

use super::queue::Queue;

/// The largest page.
const PAGE_MAX: u32 = 1_000;

impl Queue {
    /// The queue in numbers.
    pub(crate) fn stats(&self, now: Timestamp) -> QueueStats {
        let count = |state| self.shelf(state).len() as u64;
        let today = self.counters.of(now.day());
        let oldest = self.shelf(State::Pending).first().map(|(_, id)| &self.tasks[id].record);
        QueueStats {
            pending: count(State::Pending),
            active: count(State::Active),
            scheduled: count(State::Scheduled),
            retry: count(State::Retry),
            archived: count(State::Archived),
            completed: count(State::Completed),
            processed_today: today.processed,
            failed_today: today.failed,
            processed: self.counters.total.processed,
            failed: self.counters.total.failed,
            paused: self.paused.clone(),
            oldest_pending: oldest.and_then(|record| record.pending_since),
            ..QueueStats::empty(self.name().clone())
        }
    }

    /// The tasks of one state, from a place on.
    pub(crate) fn page(&self, state: State, after: Option<&Place>, limit: u32) -> Page {
        let limit = limit.clamp(1, PAGE_MAX) as usize;
        let shelf = self.shelf(state);
        let rest: Box<dyn Iterator<Item = &(i64, TaskId)>> = match (state, after) {
            (State::Scheduled | State::Retry, None) => Box::new(shelf.iter()),
            (State::Scheduled | State::Retry, Some(Place(place))) => {
                Box::new(shelf.range((Bound::Excluded(place.clone()), Bound::Unbounded)))
            }
            (_, None) => Box::new(shelf.iter().rev()),
            (_, Some(Place(place))) => Box::new(shelf.range(..place.clone()).rev()),
        };
        let mut rest = rest.peekable();
        let shown: Vec<_> = rest.by_ref().take(limit).collect();
        let last = shown.last().filter(|_| rest.peek().is_some());
        Page {
            next: last.map(|place| self.cursor(state, place)),
            tasks: shown.iter().map(|(_, id)| self.tasks[id].record.clone()).collect(),
        }
    }

    fn cursor(&self, state: State, (rank, id): &(i64, TaskId)) -> Cursor {
        let queue = self.name().as_str();
        Cursor(format!("{state}.{rank}.{}.{queue}{id}", queue.len()))
    }
}

/// Where on a shelf a page ended.
#[derive(Debug)]
pub(crate) struct Place((i64, TaskId));

impl Place {
    /// Reads a cursor that was made for this queue and state.
    pub(crate) fn read(cursor: &Cursor, queue: &str, state: State) -> Result<Self, Error> {
        let bad = || Error::BadCursor { given: cursor.0.clone() };
        let parse = || {
            let rest = cursor.0.strip_prefix(state.as_str())?.strip_prefix('.')?;
            let (rank, rest) = rest.split_once('.')?;
            let (queue_bytes, rest) = rest.split_once('.')?;
            let (of_queue, id) = rest.split_at_checked(queue_bytes.parse().ok()?)?;
            let place = (rank.parse().ok()?, TaskId::new(id).ok()?);
            (of_queue == queue).then_some(Self(place))
        };
        parse().ok_or_else(bad)
    }
}
