//! A producer of tasks that are due later.

use std::time::Instant;

use anyhow::Result;
use clap::Args;
use poolwright_core::Timestamp;

use super::TASK;
use super::enqueue::BATCH;
use super::stage::{self, Orders};
use super::stamp::payload;

/// How many, and when.
#[derive(Debug, Clone, Args)]
pub(crate) struct Schedule {
    #[arg(long)]
    redis: String,
    #[arg(long)]
    tasks: usize,
    /// When the first is due, in seconds since 1970.
    #[arg(long)]
    at: i64,
    /// Seconds from one to the next; 0: all at once.
    #[arg(long)]
    apart: i64,
}

impl Schedule {
    pub(super) async fn play(self) -> Result<()> {
        let mut orders = Orders::listen();
        let client = stage::client(&self.redis).await?;
        orders.ready().await?;
        let began = Instant::now();
        let request = |number: usize| {
            let secs = self.at + self.apart * i64::try_from(number).unwrap_or(0);
            let micros = secs * 1_000_000;
            client.raw(TASK, payload(micros, number).to_vec()).at(Timestamp::from_micros(micros))
        };
        for first in (0..self.tasks).step_by(BATCH) {
            let mut batch = client.batch();
            batch.extend((first..self.tasks.min(first + BATCH)).map(request));
            for outcome in batch.send().await {
                outcome?;
            }
        }
        stage::done(began.elapsed());
        orders.end().await;
        Ok(())
    }
}
