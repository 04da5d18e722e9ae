//! A worker: the whole product with one pool, and handlers that do nothing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use poolwright::Stores;
use poolwright::prelude::*;
use tokio::sync::Notify;

use super::TASK;
use super::stage::{self, Orders};

/// Handlers that are still to run before the last one rings. Asking the worker all the time would be work of its own.
static LEFT: AtomicU64 = AtomicU64::new(0);
static LAST: Notify = Notify::const_new();

/// How many workers, and for how many tasks.
#[derive(Debug, Clone, Args)]
pub(crate) struct Work {
    #[arg(long)]
    redis: String,
    #[arg(long)]
    workers: usize,
    #[arg(long)]
    tasks: u64,
}

impl Work {
    pub(super) async fn play(self) -> Result<()> {
        let mut orders = Orders::listen();
        LEFT.store(self.tasks, Ordering::Relaxed);
        let topology = stage::topology(self.workers)?;
        orders.ready().await?;
        let began = Instant::now();
        let running = start(&self.redis, topology).await?;
        LAST.notified().await;
        stage::done(began.elapsed());
        orders.end().await;
        running.stop_now();
        running.shutdown().await?;
        Ok(())
    }
}

/// The orchestrator as a program has it; nothing here fails, so its records may be in memory.
async fn start(redis: &str, topology: Topology) -> Result<Running> {
    let stores = Stores::open(redis, Some("memory:")).await?;
    Ok(Orchestrator::new(topology).stores(stores).handle_as(TASK, nothing).start().await?)
}

async fn nothing(_: Raw) -> Result<(), BoxError> {
    if LEFT.fetch_sub(1, Ordering::Relaxed) == 1 {
        LAST.notify_one();
    }
    Ok(())
}
