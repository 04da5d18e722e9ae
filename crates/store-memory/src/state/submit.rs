//! Storing a new task: the id first, then the lock, then the rest.

use poolwright_broker::{Enqueued, Error, How};
use poolwright_core::{NewTask, OnConflict, State, Timestamp};

use super::queue::Queue;

/// What the id of a new task meets.
enum Met {
    Nothing,
    Waiting(State),
    Running,
    Over,
}

impl Queue {
    /// Stores a task, or says why not; then nothing has changed.
    pub(crate) fn enqueue(&mut self, task: NewTask, now: Timestamp) -> Result<Enqueued, Error> {
        let key = task.key.clone();
        let state = match self.meet(&task)? {
            Met::Waiting(state) => return Ok(Enqueued { key, state, how: How::Coalesced }),
            Met::Running => {
                let entry = self.tasks.get_mut(&key.id).expect("it was just met");
                entry.set_follow_up(Some(Box::new(task)));
                return Ok(Enqueued { key, state: State::Active, how: How::RunsAgain });
            }
            Met::Nothing => {
                self.check_lock(&task, now)?;
                return Ok(Enqueued { key, state: self.store(task, now), how: How::Stored });
            }
            Met::Over => {
                self.check_lock(&task, now)?;
                let old = self.lift(&key.id).expect("it was just met");
                self.erase(&old);
                self.store(task, now)
            }
        };
        Ok(Enqueued { key, state, how: How::Replaced })
    }

    fn meet(&self, task: &NewTask) -> Result<Met, Error> {
        let Some(other) = self.tasks.get(&task.key.id) else { return Ok(Met::Nothing) };
        let state = other.record.state;
        let met = match state {
            State::Archived | State::Completed => Met::Over,
            State::Active => Met::Running,
            // It would be discarded by the next claim: coalescing with it would lose the new wish.
            _ if other.record.cancel_requested => Met::Over,
            State::Pending | State::Scheduled | State::Retry => Met::Waiting(state),
        };
        let allowed = match task.on_conflict {
            OnConflict::Reject => false,
            OnConflict::ReplaceFinished => state.is_finished(),
            OnConflict::RunAgain => true,
        };
        if allowed { Ok(met) } else { Err(Error::DuplicateId { key: task.key.clone(), state }) }
    }

    fn check_lock(&self, task: &NewTask, now: Timestamp) -> Result<(), Error> {
        let Some(lock) = &task.unique else { return Ok(()) };
        match self.locks.holder(lock, now) {
            // Its own predecessor's lock goes with the predecessor.
            Some(holder) if *holder != task.key.id => {
                Err(Error::DuplicateUnique { holder: self.key(holder) })
            }
            _ => Ok(()),
        }
    }
}
