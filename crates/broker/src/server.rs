//! What a worker process says of itself while it lives.

use std::fmt;

use poolwright_core::{PoolName, TaskKey, Timestamp, TypeName};
use serde::{Deserialize, Serialize};

use crate::WeightedQueue;

/// A worker process, across its life: `host:pid:random`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ServerId(pub String);

impl fmt::Display for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A heartbeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerBeat {
    /// Who.
    pub id: ServerId,
    /// On which host.
    pub host: String,
    /// As which process.
    pub pid: u32,
    /// Since when.
    pub started_at: Timestamp,
    /// When this was said; the store fills it in with its own clock.
    pub beat_at: Timestamp,
    /// It takes no new tasks any more.
    pub stopping: bool,
    /// Its pools.
    pub pools: Vec<PoolBeat>,
    /// What runs there.
    pub tasks: Vec<RunningTask>,
}

/// One pool of a heartbeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PoolBeat {
    /// Its name.
    pub pool: PoolName,
    /// Its workers.
    pub workers: u32,
    /// Those that are busy.
    pub busy: u32,
    /// Those whose handler outlived its timeout and cannot be dropped.
    pub stalled: u32,
    /// What it takes tasks from, own and borrowed.
    pub queues: Vec<WeightedQueue>,
}

/// One running task of a heartbeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunningTask {
    /// Which.
    pub key: TaskKey,
    /// What it is.
    pub task_type: TypeName,
    /// Where it runs.
    pub pool: PoolName,
    /// Since when.
    pub started_at: Timestamp,
    /// Its handler outlived its timeout and cannot be dropped.
    pub stalled: bool,
}
