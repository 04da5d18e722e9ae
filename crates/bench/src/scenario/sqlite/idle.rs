//! What a worker costs that has nothing to do.

use std::time::{Duration, Instant};

use anyhow::Result;
use poolwright_core::BoxError;
use poolwright_handler::{Raw, States};

use super::figure::Figure;
use super::world::{World, pool, worker};
use crate::processor;

/// How long it is watched.
const WATCHED: Duration = Duration::from_secs(10);

async fn nothing(_: Raw) -> Result<(), BoxError> {
    Ok(())
}

/// Percent of one core, six pools, ten seconds.
pub(crate) async fn processor(world: &World) -> Result<Figure> {
    let store = world.store()?;
    let sizes =
        [("core", 8), ("postprocess", 2), ("enrichment", 12), ("maintenance", 4), ("shared", 6), ("wiki", 8)];
    let pools = sizes.map(|(name, workers)| pool(name, workers)).to_vec();
    let running = worker(&store, pools, States::default(), nothing)?;
    // The start is not part of it.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let own = std::process::id();
    let (before, began) = (processor::of(own)?, Instant::now());
    tokio::time::sleep(WATCHED).await;
    let share = (processor::of(own)? - before).as_secs_f64() / began.elapsed().as_secs_f64();
    running.stop();
    running.wait().await;
    store.close().await?;
    Ok(Figure::share("idle worker, six pools", share * 100.0, "% of a core"))
}
