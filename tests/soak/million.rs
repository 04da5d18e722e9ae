//! A million tasks through one file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use acceptance::place::{Place, Sums, sums};
use poolwright::prelude::*;

use crate::{now, patiently, secs_since};

const TASKS: u32 = 1_000_000;
const BATCH: u32 = 1_000;

const QUEUES: &str = r#"
[pools.main]
workers = 50
threads = 2
queues = { work = 1 }

[tasks.work]
queue = "work"
"#;

/// How often each task ran.
type Runs = Arc<Vec<AtomicU8>>;

async fn tick(task: Raw, State(runs): State<Runs>) -> Result<(), BoxError> {
    let number = u32::from_le_bytes(task.bytes.as_ref().try_into()?);
    runs[number as usize].fetch_add(1, Ordering::Relaxed);
    Ok(())
}

#[tokio::test]
async fn soak_a_million_tasks() {
    million("million", Place::new(QUEUES)).await;
}

#[tokio::test]
async fn soak_redis_a_million_tasks() {
    million("million on redis", Place::on_redis(QUEUES)).await;
}

async fn million(name: &str, place: Place) {
    patiently(async {
        let client = place.client().await;
        let begun = now();
        for first in (0..TASKS).step_by(BATCH as usize) {
            let mut batch = client.batch();
            (first..first + BATCH).for_each(|at| batch.push(client.raw("work", at.to_le_bytes().to_vec())));
            assert!(batch.send().await.iter().all(Result::is_ok));
        }
        let enqueue = f64::from(TASKS) / secs_since(begun);
        let inspector = place.inspector().await;
        assert_eq!(sums(&inspector, "work").await.pending, u64::from(TASKS));
        let bytes = match place.server() {
            None => std::fs::metadata(place.database()).unwrap().len(),
            Some(server) => {
                let info = server.command(&["INFO", "memory"]).await.unwrap();
                info.line("used_memory").unwrap().parse().unwrap()
            }
        };

        let runs: Runs = Arc::new((0..TASKS).map(|_| AtomicU8::new(0)).collect());
        let begun = now();
        let app =
            place.orchestrator().state(Arc::clone(&runs)).handle_as("work", tick).start().await.unwrap();
        app.until(|status| status.counts.completed == u64::from(TASKS)).await;
        let drain = f64::from(TASKS) / secs_since(begun);
        app.shutdown().await.unwrap();

        assert!(runs.iter().all(|runs| runs.load(Ordering::Relaxed) == 1), "each ran once");
        let ended = Sums { processed: u64::from(TASKS), ..Sums::default() };
        assert_eq!(sums(&inspector, "work").await, ended);
        let mib = bytes / (1 << 20);
        println!("figures: {name} enqueue_per_sec={enqueue:.0} drain_per_sec={drain:.0} mib={mib}");
    })
    .await;
}
