//! One task from its enqueue to its end, as a user would write it, looked at on its way.

use std::sync::Arc;

use acceptance::safely;
use poolwright::broker::Find;
use poolwright::core::{State as TaskState, TaskKey};
use poolwright::prelude::*;
use tokio::sync::{Notify, mpsc};

use crate::place;

const QUEUES: &str = r#"
[pools.core]
workers = 2
queues = { documents = 1 }

[tasks."document:process"]
queue = "documents"
retention = "1h"
subject = { knowledge = "knowledge_id" }
shows = ["knowledge_id"]
"#;

#[derive(Serialize, Deserialize, TaskType)]
#[task("document:process")]
struct DocumentProcess {
    knowledge_id: String,
    text: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Parsed {
    words: usize,
    origin: String,
}

/// The application's state: here a desk at which every document waits to be looked at.
#[derive(Clone)]
struct Desk {
    arrived: mpsc::UnboundedSender<String>,
    looked_at: Arc<Notify>,
}

async fn process(task: DocumentProcess, cx: Context, State(desk): State<Desk>) -> Result<Parsed, BoxError> {
    let words = task.text.split_whitespace().count();
    cx.progress(0.5, "counted").await;
    desk.arrived.send(task.knowledge_id)?;
    desk.looked_at.notified().await;
    cx.checkpoint()?;
    Ok(Parsed { words, origin: cx.headers()["origin"].clone() })
}

async fn walk(orchestrator: Orchestrator) -> TaskKey {
    let (arrived, mut arrivals) = mpsc::unbounded_channel();
    let desk = Desk { arrived, looked_at: Arc::default() };
    let app = orchestrator.state(desk.clone()).handle(process).start().await.unwrap();
    let (client, inspector) = (app.client(), app.inspector());

    // It waits.
    inspector.pause("documents", "to look at what waits").await.unwrap();
    let document = DocumentProcess { knowledge_id: "kn_42".into(), text: "four score and seven".into() };
    let key = client.task(&document).header("origin", "import").send().await.unwrap().key;
    let task = inspector.task(&key).await.unwrap();
    assert_eq!((task.state, task.retried), (TaskState::Pending, 0));
    assert_eq!(task.shown["knowledge_id"], "kn_42");
    let queue = inspector.queue("documents").await.unwrap();
    assert_eq!((queue.pending, queue.size, queue.processed_total), (1, 1, 0));
    assert_eq!(queue.paused_reason.as_deref(), Some("to look at what waits"));
    let found = inspector.find(Find::Subject(Subject::new("knowledge", "kn_42")), 9).await.unwrap();
    assert!(found.complete);
    assert_eq!(found.tasks.iter().map(|found| &found.key).collect::<Vec<_>>(), [&key]);

    // It runs.
    inspector.resume("documents").await.unwrap();
    assert_eq!(arrivals.recv().await.unwrap(), "kn_42");
    let task = inspector.task(&key).await.unwrap();
    assert_eq!(task.state, TaskState::Active);
    let progress = task.progress.unwrap();
    assert_eq!((progress.done, &*progress.note), (0.5, "counted"));
    assert_eq!(inspector.queue("documents").await.unwrap().active, 1);

    // It has ended, and is kept.
    desk.looked_at.notify_one();
    app.until(|status| status.counts.completed == 1 && status.busy() == 0).await;
    ended(&inspector, &key).await;
    app.stop();
    let report = app.wait().await;
    assert_eq!((report.unsettled, report.stuck, report.status.counts.claimed), (0, 0, 1));
    assert!(inspector.servers().await.unwrap().is_empty(), "a worker that stopped leaves no record");
    app.shutdown().await.unwrap();
    key
}

async fn ended(inspector: &TaskInspector, key: &TaskKey) {
    let task = inspector.raw(key).await.unwrap();
    assert_eq!((task.state, task.retried), (TaskState::Completed, 0));
    let result: Parsed = serde_json::from_slice(&task.result.unwrap()).unwrap();
    assert_eq!(result, Parsed { words: 4, origin: "import".into() });
    assert_eq!(task.headers["origin"], "import");
    let (completed, expires) = (task.completed_at.unwrap(), task.expires_at.unwrap());
    assert_eq!(expires.since(completed), Duration::from_secs(3_600));
    let queue = inspector.queue("documents").await.unwrap();
    assert_eq!((queue.size, queue.completed, queue.processed_total, queue.failed_total), (0, 1, 1, 0));
    let today = &inspector.history("documents", 1).await.unwrap()[0];
    assert_eq!((today.processed, today.failed), (1, 0));
}

#[tokio::test]
async fn a_task_walks_from_its_enqueue_to_its_end_and_the_store_remembers() {
    safely(async {
        let place = place(QUEUES);
        let orchestrator = match place.server() {
            Some(_) => place.orchestrator(),
            // As a user writes it: with nothing but a path, so that every step is on the disk.
            None => place.orchestrator().broker(format!("sqlite://{}", place.database().display())),
        };
        let key = walk(orchestrator).await;
        ended(&place.inspector().await, &key).await;
    })
    .await;
}

#[tokio::test]
async fn a_task_walks_the_same_way_in_memory() {
    safely(async {
        let place = place(QUEUES);
        walk(Orchestrator::load(place.config()).unwrap().broker("memory:")).await;
    })
    .await;
}
