//! What people do to tasks by hand.
//!
//! Invariant: nothing here touches an active task but its cancel flag, and nothing here is counted.

use bytes::Bytes;
use poolwright_broker::{Bulk, BulkAction, CancelOutcome, Error};
use poolwright_core::{Chance, Class, State, TaskId, Timestamp, Token, When};

use super::entry::Entry;
use super::queue::Queue;

/// States that an action takes, and how its refusal says so.
struct Takes {
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
const BULK_ARCHIVE: &[State] = &[State::Pending, State::Scheduled, State::Retry];
const DELETE: Takes = Takes {
    states: &[State::Pending, State::Scheduled, State::Retry, State::Archived, State::Completed],
    wanted: "only a task that is not active can be deleted",
};
const CHANGE: Takes = Takes {
    states: &[State::Pending, State::Scheduled, State::Retry],
    wanted: "only a pending, scheduled or retry task can be changed",
};

impl Queue {
    /// Flags a task that waits or runs.
    pub(crate) fn request_cancel(&mut self, id: &TaskId) -> CancelOutcome {
        let Some(entry) = self.tasks.get_mut(id) else { return CancelOutcome::NotFound };
        match entry.record.state {
            State::Archived | State::Completed => return CancelOutcome::Finished,
            _ => entry.record.cancel_requested = true,
        }
        match entry.record.state {
            State::Active => CancelOutcome::Signalled,
            _ => CancelOutcome::Flagged,
        }
    }

    /// Makes a task pending; gives the state it was in.
    pub(crate) fn run_now(&mut self, id: &TaskId, now: Timestamp) -> Result<State, Error> {
        let mut entry = self.lift_for(id, &RUN_NOW)?;
        let was = entry.record.state;
        entry.wait(self.end_position(), now);
        entry.record.deferrals = 0;
        entry.record.crashes = 0;
        entry.record.cancel_requested = false;
        entry.record.token = None;
        self.put(entry);
        Ok(was)
    }

    /// Archives a task; gives the state it was in.
    pub(crate) fn archive(
        &mut self,
        id: &TaskId,
        reason: &str,
        now: Timestamp,
        chance: &Chance,
    ) -> Result<State, Error> {
        let mut entry = self.lift_for(id, &ARCHIVE)?;
        let was = entry.record.state;
        entry.set_follow_up(None);
        entry.archive(Class::Operator, reason, now);
        entry.record.token = Some(Token::fresh(chance));
        self.end_kept(entry, now);
        Ok(was)
    }

    /// Deletes a task; gives the state it was in.
    pub(crate) fn delete(&mut self, id: &TaskId) -> Result<State, Error> {
        let entry = self.lift_for(id, &DELETE)?;
        self.erase(&entry);
        Ok(entry.record.state)
    }

    /// The same for the first tasks of a state; gives how many.
    pub(crate) fn bulk(&mut self, bulk: &Bulk, now: Timestamp, chance: &Chance) -> u64 {
        let takes = match bulk.action {
            BulkAction::RunNow => RUN_NOW.states,
            BulkAction::Archive => BULK_ARCHIVE,
            BulkAction::Delete => DELETE.states,
        };
        if !takes.contains(&bulk.state) {
            return 0;
        }
        let first = self.shelf(bulk.state).iter().take(bulk.limit as usize);
        let ids: Vec<TaskId> = first.map(|(_, id)| id.clone()).collect();
        for id in &ids {
            let done = match bulk.action {
                BulkAction::RunNow => self.run_now(id, now),
                BulkAction::Archive => self.archive(id, &bulk.reason, now, chance),
                BulkAction::Delete => self.delete(id),
            };
            done.expect("the task lies on a shelf that the action takes");
        }
        ids.len() as u64
    }

    /// Gives a waiting task another due time.
    pub(crate) fn reschedule(&mut self, id: &TaskId, when: When, now: Timestamp) -> Result<(), Error> {
        let mut entry = self.lift_for(id, &CHANGE)?;
        match (when.due(now), entry.record.state) {
            (None, State::Pending) => {}
            (None, _) => entry.wait(self.end_position(), now),
            (Some(due), State::Retry) => entry.wait_until(State::Retry, due),
            (Some(due), _) => entry.wait_until(State::Scheduled, due),
        }
        self.put(entry);
        Ok(())
    }

    /// Replaces the payload of a waiting task.
    pub(crate) fn update_payload(&mut self, id: &TaskId, payload: Bytes) -> Result<(), Error> {
        self.check(id, &CHANGE)?;
        self.tasks.get_mut(id).expect("it was just checked").record.payload = payload;
        Ok(())
    }

    fn lift_for(&mut self, id: &TaskId, takes: &Takes) -> Result<Entry, Error> {
        self.check(id, takes)?;
        Ok(self.lift(id).expect("it was just checked"))
    }

    fn check(&self, id: &TaskId, takes: &Takes) -> Result<(), Error> {
        let Some(entry) = self.tasks.get(id) else { return Err(self.not_found(id)) };
        let state = entry.record.state;
        match takes.states.contains(&state) {
            true => Ok(()),
            false => Err(Error::WrongState { key: self.key(id), state, wanted: takes.wanted }),
        }
    }
}
