//! What time does to tasks: due, expired, too old.

use poolwright_broker::{ArchiveLimits, LEASE_AHEAD_MAX, Swept};
use poolwright_core::{Chance, State, TaskId, TaskRecord, Timestamp, Token};

use super::entry::Entry;
use super::queue::Queue;

impl Queue {
    /// Makes due tasks pending, earliest first; gives how many.
    pub(crate) fn promote_due(&mut self, limit: u32, now: Timestamp) -> u32 {
        for done in 0..limit {
            let Some((_, id)) = self.next_due().filter(|(due, _)| *due <= now.as_micros()) else {
                return done;
            };
            let mut entry = self.lift(&id).expect("what lies on a shelf is stored");
            entry.wait(self.end_position(), now);
            self.put(entry);
        }
        limit
    }

    /// When the next task is due.
    pub(crate) fn next_due_at(&self) -> Option<Timestamp> {
        self.next_due().map(|(due, _)| Timestamp::from_micros(due))
    }

    fn next_due(&self) -> Option<(i64, TaskId)> {
        let first = |state| self.shelf(state).first();
        first(State::Scheduled).into_iter().chain(first(State::Retry)).min().cloned()
    }

    /// Takes over tasks whose lease has expired, earliest first, and then those whose lease no right clock can have
    /// written.
    pub(crate) fn take_over(
        &mut self,
        limit: usize,
        until: Timestamp,
        now: Timestamp,
        chance: &Chance,
    ) -> Vec<TaskRecord> {
        let expired = self.leases.iter().take_while(|(until, _)| *until <= now);
        let too_far: Vec<_> =
            self.leases.iter().rev().take_while(|(until, _)| *until > now + LEASE_AHEAD_MAX).collect();
        let expired = expired.chain(too_far.into_iter().rev()).take(limit);
        let expired: Vec<TaskId> = expired.map(|(_, id)| id.clone()).collect();
        let taken = expired.iter().map(|id| {
            let mut entry = self.lift(id).expect("what has a lease is stored");
            entry.lease(Token::fresh(chance), until);
            entry.claimed = None;
            let record = entry.record.clone();
            self.put(entry);
            record
        });
        taken.collect()
    }

    /// Removes ended tasks whose time is over or that are too many, at most `budget` of them.
    pub(crate) fn sweep(&mut self, limits: &ArchiveLimits, budget: u64, now: Timestamp) -> Swept {
        let expired = self.shelf(State::Completed).iter().take_while(|(at, _)| *at <= now.as_micros());
        let expired = Picked::from(expired, budget);
        let beyond = Picked::from(self.beyond(limits, now), budget - expired.count());
        let swept =
            Swept { expired: expired.count(), trimmed: beyond.count(), more: expired.more || beyond.more };
        for id in expired.ids.into_iter().chain(beyond.ids) {
            let entry = self.lift(&id).expect("what lies on a shelf is stored");
            self.erase(&entry);
        }
        swept
    }

    /// The archived tasks that the limits let go, oldest first.
    fn beyond(&self, limits: &ArchiveLimits, now: Timestamp) -> impl Iterator<Item = &(i64, TaskId)> {
        let shelf = self.shelf(State::Archived);
        let excess = (shelf.len() as u64).saturating_sub(limits.tasks_max);
        let age_max = limits.age_max;
        let is_too_old = move |at: i64| Timestamp::from_micros(at) + age_max <= now;
        let spare = limits.spare_unrecorded;
        shelf
            .iter()
            .zip(0..)
            .take_while(move |((at, _), place)| *place < excess || is_too_old(*at))
            .map(|(place, _)| place)
            .filter(move |(_, id)| !spare || self.tasks[id].recorded)
    }

    /// Archived tasks whose dead letter nobody has confirmed, oldest first.
    pub(crate) fn unrecorded(&self) -> impl Iterator<Item = &TaskRecord> {
        let archived = self.shelf(State::Archived).iter().map(|(_, id)| &self.tasks[id]);
        archived.filter(|entry| !entry.recorded).map(|entry| &entry.record)
    }

    /// The dead letter of this end is stored.
    pub(crate) fn mark_recorded(&mut self, id: &TaskId, token: Token) {
        let ended =
            |entry: &&mut Entry| entry.record.state == State::Archived && entry.record.token == Some(token);
        if let Some(entry) = self.tasks.get_mut(id).filter(ended) {
            entry.recorded = true;
        }
    }
}

/// The first tasks of a list, and whether it has more.
struct Picked {
    ids: Vec<TaskId>,
    more: bool,
}

impl Picked {
    fn from<'a>(mut list: impl Iterator<Item = &'a (i64, TaskId)>, budget: u64) -> Self {
        let budget = usize::try_from(budget).unwrap_or(usize::MAX);
        let ids = list.by_ref().take(budget).map(|(_, id)| id.clone()).collect();
        Self { ids, more: list.next().is_some() }
    }

    const fn count(&self) -> u64 {
        self.ids.len() as u64
    }
}
