//! How many tasks a second one process works off.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use poolwright_broker::{ClaimId, ClaimRequest, Demand, Exchanged, Held, WeightedQueue};
use poolwright_core::{BoxError, PoolName, Settlement};
use poolwright_handler::{Raw, States};
use tokio::sync::Notify;

use super::bare::Bare;
use super::figure::Figure;
use super::world::{PAYLOAD, World, name, pool, worker};

/// Handlers that are still to run before the last one rings. Asking the worker all the time would be work of its own.
static LEFT: AtomicU64 = AtomicU64::new(0);
static LAST: Notify = Notify::const_new();

async fn nothing(_: Raw) -> Result<(), BoxError> {
    if LEFT.fetch_sub(1, Ordering::Relaxed) == 1 {
        LAST.notify_one();
    }
    Ok(())
}

/// `drained` tasks out of `pending`, from the start of the worker until the last of them is settled.
pub(crate) async fn from(world: &World, pending: usize, drained: usize, workers: u32) -> Result<Figure> {
    let store = world.store()?;
    world.preload(&*store, "bench", pending).await?;
    let goal = drained as u64;
    LEFT.store(goal, Ordering::Relaxed);
    let began = Instant::now();
    let running = worker(&store, vec![pool("bench", workers)], States::default(), nothing)?;
    LAST.notified().await;
    running.until(|status| status.counts.completed >= goal).await;
    let took = began.elapsed();
    running.stop_now();
    running.wait().await;
    store.close().await?;
    Ok(Figure::rate(format!("drain, {workers} workers, {pending} pending"), drained, took))
}

/// The store without a worker: one caller settles a batch and claims the next one.
pub(crate) async fn by_store(world: &World, tasks: usize, batch: usize) -> Result<Figure> {
    let store = world.store()?;
    world.preload(&*store, "bench", tasks).await?;
    let began = Instant::now();
    let (mut settlements, mut done) = (Vec::new(), 0);
    loop {
        let request = claim(world, batch)?;
        let Exchanged { outcomes, claimed } = store.exchange(settlements, request).await?;
        for outcome in outcomes {
            outcome?;
            done += 1;
        }
        let complete = || Settlement::Complete { retain_for: Duration::ZERO, result: None };
        let claims = claimed?.claims;
        settlements = claims.iter().filter_map(|claim| Some((Held::of(&claim.task)?, complete()))).collect();
        if settlements.is_empty() {
            break;
        }
    }
    let took = began.elapsed();
    store.close().await?;
    Ok(Figure::rate(format!("drain by one caller, batches of {batch}"), done, took))
}

fn claim(world: &World, slots: usize) -> Result<ClaimRequest> {
    let demand = Demand {
        pool: PoolName::new("bench")?,
        slots: u32::try_from(slots)?,
        queues: vec![WeightedQueue { queue: name("bench"), weight: 1 }],
        seed: 0,
    };
    let lease = Duration::from_secs(30);
    Ok(ClaimRequest { id: ClaimId::fresh(world.chance()), resent: false, lease, demands: vec![demand] })
}

/// The bare loop: claims and completions in batches.
pub(crate) fn bare(world: &World, tasks: usize, batch: usize) -> Result<Figure> {
    let mut bare = Bare::open(&world.file("bare"), world.synchronous())?;
    for _ in 0..tasks / 1_000 {
        bare.enqueue(1_000, &PAYLOAD)?;
    }
    let began = Instant::now();
    let mut done = 0;
    loop {
        match bare.drain(batch)? {
            0 => break,
            some => done += some,
        }
    }
    Ok(Figure::rate(format!("bare loop: claim and complete, batches of {batch}"), done, began.elapsed()))
}

/// The first 50 thousand of a large backlog against those of a small one.
pub(crate) async fn backlog(world: &World, large: usize, workers: u32) -> Result<Vec<Figure>> {
    const SMALL: usize = 50_000;
    let small = from(world, SMALL, SMALL, workers).await?;
    let deep = from(world, large, SMALL, workers).await?;
    let ratio = Figure::share(format!("backlog: {large} / {SMALL} pending"), deep.value / small.value, "×");
    Ok(vec![small, deep, ratio])
}
