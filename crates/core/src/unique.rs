//! Unique locks: at most one task with the same lock may wait or run in a queue.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A unique lock that an enqueue asks for.
///
/// The task holds it from its enqueue until it ends in any way (done, discarded, deleted, archived, quarantined)
/// or until its time runs out, whichever is first; no path leaks it. `Retry` and `Release` keep it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UniqueLock {
    /// What must be unique, within the queue. The client makes `type:md5(payload)`, as asynq does.
    pub key: Arc<str>,
    /// How long the lock lasts at most, from the due time on. Whole seconds on Redis, at least one.
    pub lasts: Duration,
}

impl UniqueLock {
    /// A lock on this key.
    pub fn new(key: impl Into<Arc<str>>, lasts: Duration) -> Self {
        Self { key: key.into(), lasts }
    }
}

impl fmt::Display for UniqueLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)
    }
}
