//! A producer that keeps time: at a rate, whatever the answers take, or one by one with random gaps.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use poolwright::Client;
use poolwright_core::Chance;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::TASK;
use super::stage::{self, Orders};
use super::stamp::{now, payload};

/// From one look at the clock to the next.
const TICK: Duration = Duration::from_millis(1);

/// Enqueues that are not answered; with more, the producer falls behind, and that is seen.
const UNANSWERED_MAX: u32 = 2_000;

/// Random gaps, in microseconds: from, and how much more.
const GAP_MIN: u64 = 20_000;
const GAP_MORE: u64 = 180_000;

/// How many, and how fast.
#[derive(Debug, Clone, Args)]
pub(crate) struct Pace {
    #[arg(long)]
    redis: String,
    #[arg(long)]
    tasks: usize,
    /// Tasks a second; 0: one by one with gaps of 20 to 200 ms.
    #[arg(long)]
    rate: u32,
}

impl Pace {
    pub(super) async fn play(self) -> Result<()> {
        let mut orders = Orders::listen();
        let client = stage::client(&self.redis).await?;
        orders.ready().await?;
        let began = Instant::now();
        if self.rate == 0 {
            self.with_gaps(&client).await?
        } else {
            self.at_rate(&client).await?
        }
        stage::done(began.elapsed());
        orders.end().await;
        Ok(())
    }

    async fn with_gaps(&self, client: &Client) -> Result<()> {
        let chance = Chance::from_entropy();
        for number in 0..self.tasks {
            sleep(Duration::from_micros(GAP_MIN + chance.next() % GAP_MORE)).await;
            client.raw(TASK, payload(now(), number).to_vec()).send().await?;
        }
        Ok(())
    }

    async fn at_rate(&self, client: &Client) -> Result<()> {
        let unanswered = Arc::new(Semaphore::new(UNANSWERED_MAX as usize));
        let (began, mut sent, mut calls) = (Instant::now(), 0, JoinSet::new());
        while sent < self.tasks {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of tasks")]
            let due = (began.elapsed().as_secs_f64() * f64::from(self.rate)) as usize;
            while sent < due.min(self.tasks) {
                let permit = Arc::clone(&unanswered).acquire_owned().await?;
                let (client, payload) = (client.clone(), payload(now(), sent).to_vec());
                calls.spawn(async move {
                    let sent = client.raw(TASK, payload).send().await;
                    drop(permit);
                    sent
                });
                sent += 1;
            }
            while let Some(answered) = calls.try_join_next() {
                answered??;
            }
            sleep(TICK).await;
        }
        while let Some(answered) = calls.join_next().await {
            answered??;
        }
        Ok(())
    }
}
