//! The right to run one task in a pool: taken before the claim, given back when it is dropped.
//!
//! Invariant: whoever holds a task holds a permit, and at most `workers` permits of a pool are with tasks whose handlers may
//! run. A permit lives until the task's settlement is stored *and* its handler is gone, whichever is later, so that no pool
//! ever runs more handlers than it has workers, blocked threads included. One whose handler is gone and whose settlement
//! travels in the very call that claims, or in one before it that is under way, may be given out once more, ahead of its
//! return.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::Notify;

/// The workers of one pool.
#[derive(Debug)]
pub(crate) struct Slots {
    workers: u32,
    taken: AtomicU32,
    busy: AtomicU32,
    stalled: AtomicU32,
    /// Wakes the desk when a permit comes back.
    freed: Arc<Notify>,
    /// Wakes whoever watches the status.
    changed: Arc<Notify>,
}

impl Slots {
    pub(crate) fn new(workers: u32, freed: Arc<Notify>, changed: Arc<Notify>) -> Arc<Self> {
        let zero = || AtomicU32::new(0);
        Arc::new(Self { workers, taken: zero(), busy: zero(), stalled: zero(), freed, changed })
    }

    /// Takes a permit, if a worker is free, or is one of so many that will be before the permit gets its task.
    pub(crate) fn take(self: &Arc<Self>, ahead: u32) -> Option<Permit> {
        let one_more = |taken| (taken < self.workers.saturating_add(ahead)).then_some(taken + 1);
        let taken = self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more);
        taken.ok().map(|_| Permit { slots: Arc::clone(self), has_task: false })
    }

    pub(crate) const fn workers(&self) -> u32 {
        self.workers
    }

    /// How many permits can be taken, `ahead` of which come back first.
    pub(crate) fn room(&self, ahead: u32) -> u32 {
        self.workers.saturating_add(ahead).saturating_sub(self.taken.load(Ordering::Acquire))
    }

    /// How many workers have a task. One whose last result is not stored, although the call that should have done so gave
    /// it the next task, counts once.
    pub(crate) fn busy(&self) -> u32 {
        self.busy.load(Ordering::Relaxed).min(self.workers)
    }

    pub(crate) fn stalled(&self) -> u32 {
        self.stalled.load(Ordering::Relaxed)
    }

    /// One of the busy workers cannot be freed for now.
    pub(crate) fn stall(&self) {
        self.stalled.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_waiters();
    }

    /// A stalled worker came back.
    pub(crate) fn unstall(&self) {
        self.stalled.fetch_sub(1, Ordering::Relaxed);
        self.changed.notify_waiters();
    }
}

/// A taken worker. Dropping it frees the worker, whatever happened in between.
#[derive(Debug)]
pub(crate) struct Permit {
    slots: Arc<Slots>,
    has_task: bool,
}

impl Permit {
    /// The permit got its task.
    pub(crate) fn begin(mut self) -> Self {
        self.has_task = true;
        self.slots.busy.fetch_add(1, Ordering::Relaxed);
        self
    }

    pub(crate) const fn slots(&self) -> &Arc<Slots> {
        &self.slots
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.has_task {
            self.slots.busy.fetch_sub(1, Ordering::Relaxed);
        }
        self.slots.taken.fetch_sub(1, Ordering::AcqRel);
        self.slots.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(workers: u32) -> Arc<Slots> {
        Slots::new(workers, Arc::default(), Arc::default())
    }

    #[test]
    fn no_more_permits_than_workers_and_a_dropped_one_comes_back() {
        let slots = slots(2);
        let (first, second) = (slots.take(0).unwrap(), slots.take(0).unwrap());
        assert!(slots.take(0).is_none() && slots.room(0) == 0);
        drop(first);
        assert_eq!(slots.room(0), 1);
        drop((second, slots.take(0)));
        assert_eq!(slots.room(0), 2);
    }

    #[test]
    fn a_permit_that_comes_back_soon_is_given_out_once_ahead_of_its_return() {
        let slots = slots(1);
        let first = slots.take(0).unwrap();
        let next = slots.take(1).unwrap();
        assert!(slots.take(1).is_none() && slots.room(1) == 0);
        drop(first);
        assert_eq!((slots.room(0), slots.room(1)), (0, 1));
        drop(next);
        assert_eq!(slots.room(0), 1);
    }

    #[test]
    fn a_worker_is_busy_from_its_task_until_its_permit_comes_back() {
        let slots = slots(1);
        let permit = slots.take(0).unwrap();
        assert_eq!((slots.busy(), slots.room(0)), (0, 0));
        let permit = permit.begin();
        assert_eq!((slots.busy(), slots.room(0)), (1, 0));
        drop(permit);
        assert_eq!((slots.busy(), slots.room(0)), (0, 1));
    }

    #[test]
    fn a_worker_that_owes_a_result_while_it_has_the_next_task_is_busy_once() {
        let slots = slots(1);
        let owed = slots.take(0).unwrap().begin();
        let next = slots.take(1).unwrap().begin();
        assert_eq!((slots.busy(), slots.room(1)), (1, 0));
        drop((owed, next));
        assert_eq!((slots.busy(), slots.room(0)), (0, 1));
    }

    #[test]
    fn a_permit_comes_back_from_a_panic() {
        let slots = slots(1);
        let permit = slots.take(0).unwrap();
        let panicked = std::panic::catch_unwind(move || {
            let _held = permit;
            panic!("on purpose");
        });
        assert!(panicked.is_err() && slots.room(0) == 1);
    }
}
