//! A producer: enqueues, and awaits every answer.

use std::time::Instant;

use anyhow::Result;
use clap::Args;
use futures_util::future::try_join_all;
use poolwright::Client;
use poolwright::client::Request;
use poolwright_core::Subject;

use super::stage::{self, Orders};
use super::{PAYLOAD, TASK};
use crate::load::Shape;

/// Tasks in a batch.
pub(crate) const BATCH: usize = 100;

/// Callers that send single tasks at the same time.
pub(crate) const CALLERS: usize = 50;

/// What to enqueue and how.
#[derive(Debug, Clone, Args)]
pub(crate) struct Enqueue {
    #[arg(long)]
    redis: String,
    #[arg(long)]
    tasks: usize,
    #[arg(long)]
    shape: Shape,
    /// 1: each task has a subject of its own.
    #[arg(long, default_value_t = 0)]
    subjects: u32,
}

impl Enqueue {
    pub(super) async fn play(self) -> Result<()> {
        let mut orders = Orders::listen();
        let client = stage::client(&self.redis).await?;
        orders.ready().await?;
        let began = Instant::now();
        match self.shape {
            // A task of the runtime, as the callers in a server are.
            Shape::One => {
                let (part, client, tasks) = (self.clone(), client.clone(), self.tasks);
                tokio::spawn(async move { part.singles(&client, 0..tasks).await }).await??;
            }
            Shape::Callers => self.callers(&client).await?,
            Shape::Batches => self.batches(&client).await?,
        }
        stage::done(began.elapsed());
        orders.end().await;
        Ok(())
    }

    fn request<'c>(&self, client: &'c Client, number: usize) -> Request<'c> {
        let request = client.raw(TASK, &PAYLOAD[..]);
        if self.subjects == 0 {
            return request;
        }
        request.subject(Subject::new("knowledge", format!("kn_{number}")))
    }

    async fn singles(&self, client: &Client, numbers: impl Iterator<Item = usize>) -> Result<()> {
        for number in numbers {
            self.request(client, number).send().await?;
        }
        Ok(())
    }

    async fn callers(&self, client: &Client) -> Result<()> {
        let callers = (0..CALLERS).map(|caller| {
            let (part, client) = (self.clone(), client.clone());
            let numbers = (caller..self.tasks).step_by(CALLERS);
            tokio::spawn(async move { part.singles(&client, numbers).await })
        });
        try_join_all(callers).await?.into_iter().collect()
    }

    async fn batches(&self, client: &Client) -> Result<()> {
        for first in (0..self.tasks).step_by(BATCH) {
            let mut batch = client.batch();
            batch.extend((first..self.tasks.min(first + BATCH)).map(|number| self.request(client, number)));
            for outcome in batch.send().await {
                outcome?;
            }
        }
        Ok(())
    }
}
