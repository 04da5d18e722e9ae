//! What a worker costs that has nothing to do.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use poolwright_core::BoxError;
use poolwright_handler::{Raw, States};

use crate::figure::Figure;
use crate::world::{World, pool, worker};

/// How long it is watched.
const WATCHED: Duration = Duration::from_secs(10);

/// Clock ticks a second in `/proc`; fixed by Linux on all machines this runs on.
const TICKS: f64 = 100.0;

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
    let (before, began) = (ticks()?, Instant::now());
    tokio::time::sleep(WATCHED).await;
    let share = (ticks()? - before) / TICKS / began.elapsed().as_secs_f64();
    running.stop();
    running.wait().await;
    store.close().await?;
    Ok(Figure::share("idle worker, six pools", share * 100.0, "% of a core"))
}

/// User and system time of this process, in ticks.
fn ticks() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").context("idle needs Linux")?;
    // The second field is the program's name in parentheses and may hold blanks.
    let (_, after) = stat.rsplit_once(')').context("an unknown form of /proc/self/stat")?;
    let fields: Vec<&str> = after.split_whitespace().collect();
    let of =
        |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).context("a field is missing");
    Ok(of(11)? + of(12)?)
}
