//! A worker: the whole product with one pool, and handlers that do nothing.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use poolwright::Stores;
use poolwright::prelude::*;
use tokio::sync::Notify;

use super::TASK;
use super::stage::{self, Orders};
use super::stamp::Stamps;

/// Handlers that are still to run before the last one rings. Asking the worker all the time would be work of its own.
static LEFT: AtomicU64 = AtomicU64::new(0);
static LAST: Notify = Notify::const_new();

/// How late each task was, where that is asked for.
static STAMPS: OnceLock<Stamps> = OnceLock::new();

/// How many workers, and for how many tasks.
#[derive(Debug, Clone, Args)]
pub(crate) struct Work {
    #[arg(long)]
    redis: String,
    #[arg(long)]
    workers: usize,
    #[arg(long)]
    tasks: u64,
    /// Where to write how late each task began.
    #[arg(long)]
    late: Option<PathBuf>,
}

impl Work {
    pub(super) async fn play(self) -> Result<()> {
        let mut orders = Orders::listen();
        LEFT.store(self.tasks, Ordering::Relaxed);
        let app = Orchestrator::new(stage::topology(self.workers)?);
        let app = match self.late {
            None => app.handle_as(TASK, nothing),
            Some(_) => {
                STAMPS.get_or_init(|| Stamps::new(usize::try_from(self.tasks).unwrap_or(0)));
                app.handle_as(TASK, stamp)
            }
        };
        orders.ready().await?;
        let began = Instant::now();
        let running = start(&self.redis, app).await?;
        stage::say("started");
        LAST.notified().await;
        let took = began.elapsed();
        if let Some((stamps, file)) = STAMPS.get().zip(self.late) {
            stamps.write(&file)?;
        }
        stage::done(took);
        orders.end().await;
        running.stop_now();
        running.shutdown().await?;
        Ok(())
    }
}

/// Starts it with stores as a program has them; nothing here fails, so its records may be in memory.
pub(super) async fn start(redis: &str, app: Orchestrator) -> Result<Running> {
    let stores = Stores::open(redis, Some("memory:")).await?;
    Ok(app.stores(stores).start().await?)
}

async fn nothing(_: Raw) -> Result<(), BoxError> {
    ran();
    Ok(())
}

async fn stamp(task: Raw) -> Result<(), BoxError> {
    if let Some(stamps) = STAMPS.get() {
        stamps.note(&task.bytes)?;
    }
    ran();
    Ok(())
}

fn ran() {
    if LEFT.fetch_sub(1, Ordering::Relaxed) == 1 {
        LAST.notify_one();
    }
}
