//! What a process of a story is told to do, and what it says.

use std::path::PathBuf;
use std::time::Duration;

use poolwright::worker::{Phase, Status};
use serde::{Deserialize, Serialize};

use crate::journal::Event;
use crate::stage::Part;

/// What a process does; its only argument, as JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Plan {
    /// The file of queues.
    pub config: PathBuf,
    /// The store.
    pub broker: String,
    /// The URL of the ledger, where it is not beside the tasks.
    pub ledger: Option<String>,
    /// What for.
    pub role: Role,
}

/// What a process is there for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It runs the file's pools until it is told to stop, with a handler for these types; none: for all of the file.
    Work {
        /// The types it knows.
        types: Vec<String>,
    },
    /// It enqueues tasks, one after the other, and ends.
    Produce {
        /// Of this type.
        task_type: String,
        /// With the ids `prefix0`, `prefix1`, …
        prefix: String,
        /// So many.
        count: usize,
        /// That play this part.
        part: Part,
        /// Due after so long.
        delay: Duration,
    },
}

/// A line on the standard output of a process, as JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// The worker has started.
    Up {
        /// Its id in heartbeats.
        server: String,
    },
    /// Something happened on its stage.
    Played(Event),
    /// The worker's numbers have changed.
    Told(Told),
    /// So many tasks were sent until now.
    Sent(u64),
}

/// What a worker process says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Told {
    /// `running`, `draining`, `stopping` or `ended`.
    pub phase: String,
    /// Attempts that succeeded.
    pub completed: u64,
    /// Attempts that failed and used a retry.
    pub retried: u64,
    /// Tasks that failed for good.
    pub archived: u64,
    /// Tasks gone without a dead letter.
    pub discarded: u64,
    /// Tasks given back unused.
    pub released: u64,
    /// Attempts whose lease was lost.
    pub lease_lost: u64,
    /// Tasks of dead workers that were taken over.
    pub taken_over: u64,
    /// Dead letters recorded.
    pub letters: u64,
    /// At its end: results that could not be stored.
    pub unsettled: usize,
}

impl From<&Status> for Told {
    fn from(status: &Status) -> Self {
        let counts = status.counts;
        let phase = match status.phase {
            Phase::Running => "running",
            Phase::Draining => "draining",
            Phase::Stopping => "stopping",
            Phase::Ended => "ended",
        };
        Self {
            phase: phase.to_owned(),
            completed: counts.completed,
            retried: counts.retried,
            archived: counts.archived,
            discarded: counts.discarded,
            released: counts.released,
            lease_lost: counts.lease_lost,
            taken_over: counts.crashed_taken_over,
            letters: counts.letters_recorded,
            unsettled: 0,
        }
    }
}
