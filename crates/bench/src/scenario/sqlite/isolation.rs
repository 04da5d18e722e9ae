//! Whether one pool feels that another is saturated.

use std::sync::Arc;

use anyhow::Result;
use poolwright_core::BoxError;
use poolwright_core::Clock;
use poolwright_core::clock::SystemClock;
use poolwright_handler::{Context, Raw, State, States};
use tokio::sync::mpsc;

use super::figure::Figure;
use super::world::{World, pool, worker};

type Lags = mpsc::UnboundedSender<u64>;

/// Tasks that wait behind the saturated pool.
const WAITING: usize = 10_000;

async fn either(task: Raw, cx: Context, State(lags): State<Lags>) -> Result<(), BoxError> {
    if *cx.queue() == *"enrichment" {
        // Waits for ever: only the stop ends it.
        cx.cancelled().await;
        return Ok(());
    }
    let sent = i64::from_be_bytes(task.bytes[..8].try_into()?);
    lags.send(u64::try_from(SystemClock.now().as_micros() - sent).unwrap_or(0))?;
    Ok(())
}

/// Core's pick-up while enrichment's workers all wait and its queue is long, against a calm system.
pub(crate) async fn pickup(world: &World, tasks: usize) -> Result<Vec<Figure>> {
    let calm = run(world, tasks, 0).await?;
    let busy = run(world, tasks, WAITING).await?;
    let ratio = Figure::share("isolation: p99 saturated / calm", busy.p99() / calm.p99(), "×");
    let more = Figure::share("isolation: p99 saturated - calm", busy.p99() - calm.p99(), "ms");
    Ok(vec![calm, busy, ratio, more])
}

async fn run(world: &World, tasks: usize, waiting: usize) -> Result<Figure> {
    let store = world.store()?;
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let mut states = States::default();
    states.insert::<Lags>(sender);
    world.preload(&*store, "enrichment", waiting).await?;
    let running = worker(&store, vec![pool("core", 8), pool("enrichment", 12)], states, either)?;
    if waiting > 0 {
        running.until(|status| status.busy() >= 12).await;
    }
    let histogram = super::pickup::of(world, &Arc::clone(&store), "core", tasks, &mut receiver).await?;
    running.stop_now();
    running.wait().await;
    store.close().await?;
    let name = if waiting > 0 { "pick-up in core, enrichment saturated" } else { "pick-up in core, calm" };
    Ok(Figure::latency(name, &histogram))
}
