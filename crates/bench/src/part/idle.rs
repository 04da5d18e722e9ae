//! A worker that has nothing to do: the six pools and eleven queues of the preset.

use anyhow::Result;
use clap::Args;
use poolwright::prelude::*;

use super::stage::{self, Orders};
use super::work;

/// The preset.
const PRESET: &str = include_str!("../../../../queues.toml");

/// Where.
#[derive(Debug, Clone, Args)]
pub(crate) struct Idle {
    #[arg(long)]
    redis: String,
}

impl Idle {
    pub(super) async fn play(self) -> Result<()> {
        let mut orders = Orders::listen();
        let (topology, _) = Topology::parse("queues.toml", PRESET)?;
        orders.ready().await?;
        let app = topology.types().iter().map(|rules| rules.name.to_string()).collect::<Vec<_>>();
        let app = app.iter().fold(Orchestrator::new(topology), |app, name| app.handle_as(name, nothing));
        let running = work::start(&self.redis, app).await?;
        stage::say("started");
        orders.end().await;
        running.shutdown().await?;
        Ok(())
    }
}

async fn nothing(_: Raw) -> Result<(), BoxError> {
    Ok(())
}
