//! Dead letters: listed, looked at, replayed, deleted.

use std::fmt;
use std::sync::Arc;

use poolwright_core::{Class, DeadLetter, DeadLetterSink, TaskKey, Timestamp};
use serde::{Deserialize, Serialize};

use crate::Reply;

/// A dead letter's number in the ledger. Grows with time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LetterId(pub i64);

impl fmt::Display for LetterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A dead letter as the ledger keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredLetter {
    /// Its number.
    pub id: LetterId,
    /// What was recorded.
    pub letter: DeadLetter,
    /// The last replay, if there was one.
    pub replayed: Option<Replayed>,
}

/// A replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replayed {
    /// The task that carries the work on.
    pub task: TaskKey,
    /// When it was enqueued.
    pub at: Timestamp,
}

/// Which letters; all conditions must hold, an empty filter matches all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Of this task type.
    pub task_type: Option<String>,
    /// Of this reach: kind and id, see [`DeadLetter::reach`].
    pub reach: Option<(String, String)>,
    /// Of this tenant.
    pub tenant: Option<Arc<str>>,
    /// Of this class.
    pub class: Option<Class>,
    /// Of this stored queue.
    pub queue: Option<String>,
    /// Only those that were never replayed.
    pub unreplayed: bool,
}

/// A request for a page of letters, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListRequest {
    /// Which.
    pub filter: Filter,
    /// Only letters older than this one.
    pub before: Option<LetterId>,
    /// How many at most; 0 means 50, more than 200 means 200.
    pub limit: u32,
}

impl ListRequest {
    /// The limit after its rule.
    #[must_use]
    pub const fn page_size(&self) -> u32 {
        match self.limit {
            0 => 50,
            1..=200 => self.limit,
            _ => 200,
        }
    }
}

/// A page of letters, newest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LetterPage {
    /// The letters.
    pub letters: Vec<StoredLetter>,
    /// Pass it as `before` to go on; none: this was the last page.
    pub next: Option<LetterId>,
}

/// Keeps dead letters. Recording one is the [`DeadLetterSink`] part.
pub trait DeadLetters: DeadLetterSink {
    /// A page of letters.
    fn list(&self, request: ListRequest) -> Reply<'_, LetterPage>;

    /// One letter.
    fn letter(&self, id: LetterId) -> Reply<'_, Option<StoredLetter>>;

    /// How many match.
    fn count(&self, filter: Filter) -> Reply<'_, u64>;

    /// Notes that a letter's work goes on as another task.
    ///
    /// # Errors
    /// [`crate::Error::NoLetter`].
    fn mark_replayed(&self, id: LetterId, replayed: Replayed) -> Reply<'_, ()>;

    /// Deletes one; false when it was not there.
    fn delete_letter(&self, id: LetterId) -> Reply<'_, bool>;
}
