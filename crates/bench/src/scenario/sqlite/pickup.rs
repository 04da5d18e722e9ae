//! From enqueue to the start of the handler, on an idle system with random gaps.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use bytes::Bytes;
use hdrhistogram::Histogram;
use poolwright_broker::Broker;
use poolwright_core::clock::SystemClock;
use poolwright_core::{BoxError, Clock};
use poolwright_handler::{Raw, State, States};
use tokio::sync::mpsc;

use super::figure::Figure;
use super::world::{World, pool, worker};

/// Microseconds from the stamp in the payload to now; both processes read the same system clock.
type Lags = mpsc::UnboundedSender<u64>;

async fn stamp(task: Raw, State(lags): State<Lags>) -> Result<(), BoxError> {
    let now = SystemClock.now().as_micros();
    let sent = i64::from_be_bytes(task.bytes[..8].try_into()?);
    lags.send(u64::try_from(now - sent).unwrap_or(0))?;
    Ok(())
}

/// Sends tasks with their time, in random gaps of 5 to 45 ms.
async fn send(world: &World, store: &dyn Broker, queue: &str, tasks: usize) -> Result<()> {
    for _ in 0..tasks {
        tokio::time::sleep(Duration::from_micros(5_000 + world.chance().next() % 40_000)).await;
        let mut task = world.task(queue);
        task.payload = Bytes::copy_from_slice(&SystemClock.now().as_micros().to_be_bytes());
        for outcome in store.enqueue(vec![task]).await? {
            outcome?;
        }
    }
    Ok(())
}

/// Receives so many lags.
async fn collect(mut lags: mpsc::UnboundedReceiver<u64>, tasks: usize) -> Result<Histogram<u64>> {
    let mut histogram = Histogram::new(3)?;
    for _ in 0..tasks {
        let lag = lags.recv().await.ok_or_else(|| anyhow::anyhow!("the worker ended early"))?;
        histogram.record(lag)?;
    }
    Ok(histogram)
}

/// A state with its receiver.
fn lags() -> (States, mpsc::UnboundedReceiver<u64>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let mut states = States::default();
    states.insert::<Lags>(sender);
    (states, receiver)
}

/// Producer and worker in one process.
pub(crate) async fn in_process(world: &World, tasks: usize) -> Result<Figure> {
    let store = world.store()?;
    let (states, receiver) = lags();
    let running = worker(&store, vec![pool("bench", 10)], states, stamp)?;
    send(world, &*store, "bench", tasks).await?;
    let histogram = collect(receiver, tasks).await?;
    running.stop();
    running.wait().await;
    store.close().await?;
    Ok(Figure::latency("pick-up, one process", &histogram))
}

/// Producer in another process, on the same file.
pub(crate) async fn across(world: &World, tasks: usize) -> Result<Figure> {
    // The other process finds the file by this name.
    let file = world.dir().join("across.db");
    let store = world.open(&file)?;
    let (states, receiver) = lags();
    let running = worker(&store, vec![pool("bench", 10)], states, stamp)?;
    let mut producer = tokio::process::Command::new(std::env::current_exe()?)
        .args([
            "produce",
            "--broker",
            "sqlite",
            "--tasks",
            &tasks.to_string(),
            "--synchronous",
            world.synchronous(),
            "--dir",
        ])
        .arg(world.dir())
        .spawn()?;
    let histogram = collect(receiver, tasks).await?;
    ensure!(producer.wait().await?.success(), "the producer failed");
    running.stop();
    running.wait().await;
    store.close().await?;
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(world.dir().join(format!("across.db{end}")));
    }
    Ok(Figure::latency("pick-up, across processes", &histogram))
}

/// The producer's side of it.
pub(crate) async fn produce(world: &World, tasks: usize) -> Result<()> {
    let store = world.open(&world.dir().join("across.db"))?;
    send(world, &*store, "bench", tasks).await?;
    store.close().await?;
    Ok(())
}

/// Pick-up in `queue` of a worker that runs already and sends its lags here.
pub(crate) async fn of(
    world: &World,
    store: &Arc<dyn Broker>,
    queue: &str,
    tasks: usize,
    lags: &mut mpsc::UnboundedReceiver<u64>,
) -> Result<Histogram<u64>> {
    send(world, &**store, queue, tasks).await?;
    let mut histogram = Histogram::new(3)?;
    for _ in 0..tasks {
        histogram.record(lags.recv().await.ok_or_else(|| anyhow::anyhow!("the worker ended early"))?)?;
    }
    Ok(histogram)
}
