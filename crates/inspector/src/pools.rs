//! Pools and the processes that run them, as their heartbeats say.

use std::collections::BTreeMap;

use poolwright_broker::{PoolBeat, RunningTask, ServerBeat, ServerId};
use poolwright_core::{PoolName, TaskId, Timestamp, TypeName};
use poolwright_registry::{Pool, Topology};
use serde::Serialize;

use crate::{Error, TaskInspector, queues, times};

/// A pool over all live processes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PoolView {
    /// Its name.
    pub name: PoolName,
    /// Its name for people.
    pub label: String,
    /// Its workers in each process, by the file and what overrides it here; 0 when the file does not know it.
    pub concurrency: usize,
    /// How many queues it serves, its own and those it borrows.
    pub queue_count: usize,
    /// Live processes that run it and take new tasks.
    pub instances: usize,
    /// Their workers together.
    pub cluster_capacity: u64,
    /// Of these, busy ones.
    pub active: u64,
    /// Of these, ones whose handler outlived its timeout and cannot be dropped.
    pub stalled: u64,
    /// `active / cluster_capacity`; 0 when there is no capacity.
    pub utilization: f64,
}

/// A live worker process.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ServerView {
    /// Its id across its life.
    pub id: ServerId,
    /// Its host.
    pub host: String,
    /// Its process there.
    pub pid: u32,
    /// Since when it lives.
    #[serde(serialize_with = "times::one")]
    pub started_at: Timestamp,
    /// When it was heard of last.
    #[serde(serialize_with = "times::one")]
    pub beat_at: Timestamp,
    /// `active`, or `stopping` when it takes no new tasks any more.
    pub status: &'static str,
    /// The pools it runs.
    pub pools: Vec<PoolBeat>,
    /// What runs there.
    pub tasks: Vec<RunningView>,
}

/// A task that runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunningView {
    /// Its id.
    pub id: TaskId,
    /// Its queue, as the file calls it.
    pub queue: String,
    /// What it is.
    #[serde(rename = "type")]
    pub task_type: TypeName,
    /// The pool that runs it.
    pub pool: PoolName,
    /// Since when.
    #[serde(serialize_with = "times::one")]
    pub started_at: Timestamp,
    /// Its handler outlived its timeout and cannot be dropped.
    pub stalled: bool,
}

impl TaskInspector {
    /// Every pool of the file in its order, then those that only heartbeats know. A process that is stopping is not
    /// counted: it takes no new tasks.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn pools(&self) -> Result<Vec<PoolView>, Error> {
        let servers = self.broker.servers().await?;
        Ok(pools(&self.topology, &servers))
    }

    /// The live worker processes.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn servers(&self) -> Result<Vec<ServerView>, Error> {
        let servers = self.broker.servers().await?;
        Ok(servers.into_iter().map(|server| self.server(server)).collect())
    }

    fn server(&self, beat: ServerBeat) -> ServerView {
        ServerView {
            id: beat.id,
            host: beat.host,
            pid: beat.pid,
            started_at: beat.started_at,
            beat_at: beat.beat_at,
            status: if beat.stopping { "stopping" } else { "active" },
            pools: beat.pools,
            tasks: beat.tasks.into_iter().map(|task| self.running(task)).collect(),
        }
    }

    fn running(&self, task: RunningTask) -> RunningView {
        RunningView {
            queue: queues::shown_name(&self.topology, &task.key.queue),
            id: task.key.id,
            task_type: task.task_type,
            pool: task.pool,
            started_at: task.started_at,
            stalled: task.stalled,
        }
    }
}

fn pools(topology: &Topology, servers: &[ServerBeat]) -> Vec<PoolView> {
    let mut beats: BTreeMap<&PoolName, Vec<&PoolBeat>> = BTreeMap::new();
    for beat in servers.iter().filter(|server| !server.stopping).flat_map(|server| &server.pools) {
        beats.entry(&beat.pool).or_default().push(beat);
    }
    let mut views: Vec<PoolView> = topology
        .pools()
        .iter()
        .map(|pool| view(&pool.name, Some(pool), beats.remove(&pool.name).as_deref().unwrap_or_default()))
        .collect();
    views.extend(beats.into_iter().map(|(name, beats)| view(name, None, &beats)));
    views
}

fn view(name: &PoolName, known: Option<&Pool>, beats: &[&PoolBeat]) -> PoolView {
    let sum = |of: fn(&PoolBeat) -> u32| beats.iter().map(|beat| u64::from(of(beat))).sum::<u64>();
    let (capacity, active) = (sum(|beat| beat.workers), sum(|beat| beat.busy));
    PoolView {
        name: name.clone(),
        label: known.map_or_else(|| name.to_string(), |pool| pool.label.to_string()),
        concurrency: known.map_or(0, |pool| *pool.workers),
        queue_count: match known {
            Some(pool) => pool.serves().count(),
            None => beats.first().map_or(0, |beat| beat.queues.len()),
        },
        instances: beats.len(),
        cluster_capacity: capacity,
        active,
        stalled: sum(|beat| beat.stalled),
        // Capacities are far below 2^52, so both are exact.
        utilization: if capacity == 0 { 0.0 } else { active as f64 / capacity as f64 },
    }
}
