//! What a span of time cost: the processes that work, the store, and how much of the machine others used.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::processor;
use crate::server::Server;

/// Begun when the work begins.
pub(crate) struct Meter<'s> {
    server: &'s Server,
    pids: Vec<u32>,
    before: Reading,
}

struct Reading {
    at: Instant,
    store: Duration,
    processes: Vec<Duration>,
    own: Duration,
    busy: Duration,
}

/// What was spent between two readings.
pub(crate) struct Spent {
    /// How long it took.
    pub(crate) wall: Duration,
    /// Processor time of the server.
    pub(crate) store: Duration,
    /// Processor time of each process, in the order in which they were named.
    pub(crate) processes: Vec<Duration>,
    /// The share of the machine, from 0 to 1, that neither of us used. More than some hundredths spoil a measurement.
    pub(crate) others: f64,
}

impl<'s> Meter<'s> {
    /// Begins, with an eye on these processes.
    pub(crate) async fn start(server: &'s Server, pids: &[u32]) -> Result<Self> {
        let before = read(server, pids).await?;
        Ok(Self { server, pids: pids.to_vec(), before })
    }

    /// Ends; the processes have to be there still.
    pub(crate) async fn stop(self) -> Result<Spent> {
        let (before, after) = (self.before, read(self.server, &self.pids).await?);
        let pairs = after.processes.iter().zip(&before.processes);
        let processes: Vec<Duration> = pairs.map(|(after, before)| after.saturating_sub(*before)).collect();
        let wall = after.at - before.at;
        let store = after.store.saturating_sub(before.store);
        let ours = processes.iter().sum::<Duration>() + store + after.own.saturating_sub(before.own);
        let others = after.busy.saturating_sub(before.busy).saturating_sub(ours);
        #[allow(clippy::cast_precision_loss, reason = "no machine has 2^52 processors")]
        let machine = wall.as_secs_f64() * processor::count() as f64;
        Ok(Spent { wall, store, processes, others: others.as_secs_f64() / machine })
    }
}

async fn read(server: &Server, pids: &[u32]) -> Result<Reading> {
    Ok(Reading {
        store: server.processor().await?,
        processes: pids.iter().map(|pid| processor::of(*pid)).collect::<Result<_>>()?,
        own: processor::of(std::process::id())?,
        busy: processor::busy()?,
        at: Instant::now(),
    })
}
