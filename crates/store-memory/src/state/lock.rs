//! The unique locks of one queue.
//!
//! Invariant: only the holder frees a lock. One whose time is over counts as free, and may still be listed.

use std::collections::BTreeMap;
use std::sync::Arc;

use poolwright_core::{TaskId, Timestamp, UniqueLock};

/// Locks by their key.
#[derive(Debug, Default)]
pub(crate) struct Locks(BTreeMap<Arc<str>, Held>);

#[derive(Debug)]
struct Held {
    by: TaskId,
    until: Timestamp,
}

impl Locks {
    /// Who holds it now.
    pub(crate) fn holder(&self, lock: &UniqueLock, now: Timestamp) -> Option<&TaskId> {
        self.0.get(&lock.key).filter(|held| held.until > now).map(|held| &held.by)
    }

    /// Gives it to this task; the caller has seen that it is free.
    pub(crate) fn take(&mut self, lock: &UniqueLock, by: TaskId, until: Timestamp) {
        self.0.insert(Arc::clone(&lock.key), Held { by, until });
    }

    /// Frees it if it is this task's.
    pub(crate) fn free(&mut self, lock: &UniqueLock, by: &TaskId) {
        if self.0.get(&lock.key).is_some_and(|held| held.by == *by) {
            self.0.remove(&lock.key);
        }
    }
}
