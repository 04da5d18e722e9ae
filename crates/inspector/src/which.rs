//! How callers name a task: by key, by queue and id, or by id alone.

use poolwright_core::{TaskId, TaskKey};

/// A task that somebody names. Methods take `impl Into<Which>`:
///
/// ```
/// # use poolwright_inspector::Which;
/// let _: Which = ("maintenance", "a1").into(); // queue (as the file or as the store calls it) and id
/// let _: Which = "a1".into();                  // the id alone: every queue is searched
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Which {
    /// Exactly this one.
    Key(TaskKey),
    /// The one with this id in this queue, as the file or as the store calls the queue.
    In {
        /// The queue.
        queue: String,
        /// The id.
        id: String,
    },
    /// The only one with this id.
    Id(String),
}

impl From<TaskKey> for Which {
    fn from(key: TaskKey) -> Self {
        Self::Key(key)
    }
}

impl From<&TaskKey> for Which {
    fn from(key: &TaskKey) -> Self {
        Self::Key(key.clone())
    }
}

impl From<(&str, &str)> for Which {
    fn from((queue, id): (&str, &str)) -> Self {
        Self::In { queue: queue.to_owned(), id: id.to_owned() }
    }
}

impl From<&str> for Which {
    fn from(id: &str) -> Self {
        Self::Id(id.to_owned())
    }
}

impl From<&TaskId> for Which {
    fn from(id: &TaskId) -> Self {
        Self::Id(id.as_str().to_owned())
    }
}
