//! One queue: its tasks, each in its place, with everything that hangs on a task.
//!
//! Invariant: a task in `tasks` lies on the one shelf that its state names, at its rank; it is in `leases` exactly
//! while active, and in the index for as long as it exists. Whoever changes state or rank lifts the task out, changes
//! it, and puts it back or ends it. Looking at places is done with [`Queue::shelf`].

use std::collections::{BTreeMap, BTreeSet};

use poolwright_broker::{Error, Paused};
use poolwright_core::text::error_text;
use poolwright_core::{NewTask, QueueName, State, TaskId, TaskKey, Timestamp};

use super::count::Counters;
use super::entry::Entry;
use super::index::Index;
use super::lock::Locks;

/// The tasks of one state in their order: by rank, then by id.
pub(crate) type Shelf = BTreeSet<(i64, TaskId)>;

/// One queue.
#[derive(Debug)]
pub(crate) struct Queue {
    name: QueueName,
    /// Some task was stored here once. A queue that was only paused is not known.
    pub(crate) known: bool,
    pub(crate) paused: Option<Paused>,
    pub(crate) tasks: BTreeMap<TaskId, Entry>,
    shelves: [Shelf; State::ALL.len()],
    pub(crate) leases: BTreeSet<(Timestamp, TaskId)>,
    pub(crate) locks: Locks,
    pub(crate) index: Index,
    pub(crate) counters: Counters,
    last_position: i64,
    woken: bool,
}

impl Queue {
    pub(crate) fn new(name: QueueName) -> Self {
        Self {
            name,
            known: false,
            paused: None,
            tasks: BTreeMap::new(),
            shelves: Default::default(),
            leases: BTreeSet::new(),
            locks: Locks::default(),
            index: Index::default(),
            counters: Counters::default(),
            last_position: 0,
            woken: false,
        }
    }

    pub(crate) fn name(&self) -> &QueueName {
        &self.name
    }

    pub(crate) fn key(&self, id: &TaskId) -> TaskKey {
        TaskKey::new(self.name.clone(), id.clone())
    }

    pub(crate) fn not_found(&self, id: &TaskId) -> Error {
        Error::NotFound { key: self.key(id) }
    }

    pub(crate) const fn shelf(&self, state: State) -> &Shelf {
        &self.shelves[state as usize]
    }

    /// The id of the task that the given end of a shelf begins with.
    pub(crate) fn first(&self, state: State) -> Option<TaskId> {
        self.shelf(state).first().map(|(_, id)| id.clone())
    }

    /// The end of the queue: after everything that was ever put there.
    pub(crate) const fn end_position(&mut self) -> i64 {
        self.last_position += 1;
        self.last_position
    }

    /// Takes a task out of its place, to change it.
    pub(crate) fn lift(&mut self, id: &TaskId) -> Option<Entry> {
        let entry = self.tasks.remove(id)?;
        self.shelves[entry.record.state as usize].remove(&(entry.rank(), id.clone()));
        if let Some(until) = entry.record.lease_until {
            self.leases.remove(&(until, id.clone()));
        }
        Some(entry)
    }

    /// Puts a task in the place that its state and rank name. What waits there for a worker or a time wakes watchers.
    pub(crate) fn put(&mut self, entry: Entry) {
        let (id, state) = (entry.record.key.id.clone(), entry.record.state);
        self.shelves[state as usize].insert((entry.rank(), id.clone()));
        if let Some(until) = entry.record.lease_until {
            self.leases.insert((until, id.clone()));
        }
        if matches!(state, State::Pending | State::Scheduled | State::Retry) {
            self.woken = true;
        }
        self.tasks.insert(id, entry);
    }

    /// Stores a task that is new here. Its id is free, and so is its lock if it still has one.
    pub(crate) fn store(&mut self, task: NewTask, now: Timestamp) -> State {
        let position = self.end_position();
        let entry = Entry::new(task, now, position);
        if let Some(lock) = &entry.record.unique {
            let until = entry.record.due.unwrap_or(now) + lock.lasts;
            self.locks.take(lock, entry.record.key.id.clone(), until);
        }
        self.index.add(&entry.record);
        self.known = true;
        let state = entry.record.state;
        self.put(entry);
        state
    }

    /// Removes every trace of a task that was lifted out.
    pub(crate) fn erase(&mut self, entry: &Entry) {
        self.free_lock(entry);
        self.index.remove(&entry.record);
    }

    pub(crate) fn free_lock(&mut self, entry: &Entry) {
        if let Some(lock) = &entry.record.unique {
            self.locks.free(lock, &entry.record.key.id);
        }
    }

    /// Ends a task that was lifted out and is not kept: its follow-up takes its place, if it has one.
    pub(crate) fn end_gone(&mut self, mut entry: Entry, now: Timestamp) {
        let follow_up = entry.follow_up.take();
        self.erase(&entry);
        if let Some(task) = follow_up {
            self.store_follow_up(*task, now);
        }
    }

    /// Ends a task that was lifted out and is kept as it is now, unless its follow-up takes its place.
    pub(crate) fn end_kept(&mut self, entry: Entry, now: Timestamp) {
        if entry.follow_up.is_some() {
            return self.end_gone(entry, now);
        }
        self.free_lock(&entry);
        self.put(entry);
    }

    /// A follow-up cannot be refused any more, since its enqueue was answered: without its lock it runs all the same.
    fn store_follow_up(&mut self, mut task: NewTask, now: Timestamp) {
        task.unique = task.unique.filter(|lock| self.locks.holder(lock, now).is_none());
        self.store(task, now);
    }

    /// Stops claims, for this reason; false when they were stopped already and nothing was changed.
    pub(crate) fn pause(&mut self, reason: &str, now: Timestamp) -> bool {
        if self.paused.is_some() {
            return false;
        }
        self.paused = Some(Paused { reason: error_text(reason), since: now });
        true
    }

    /// Allows claims; false when they were allowed.
    pub(crate) fn resume(&mut self) -> bool {
        let was_paused = self.paused.take().is_some();
        self.woken |= was_paused;
        was_paused
    }

    /// Something to wait for came since the last call.
    pub(crate) const fn take_woken(&mut self) -> bool {
        std::mem::replace(&mut self.woken, false)
    }
}
