//! The sample that the README and the architecture promise, as it is written there.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use poolwright::prelude::*;

const HOUR: Duration = Duration::from_secs(3_600);

#[derive(Serialize, Deserialize)]
struct DocumentProcess {
    tenant_id: u64,
    knowledge_id: String,
    path: PathBuf,
}
impl TaskType for DocumentProcess {
    const NAME: &'static str = "document:process";
}

#[derive(Clone, Default)]
struct Db(Arc<Mutex<Vec<(String, String)>>>);

impl Db {
    async fn store(&self, id: &str, text: String) -> Result<(), std::io::Error> {
        self.0.lock().unwrap().push((id.to_owned(), text));
        Ok(())
    }
}

async fn read(path: &Path) -> Result<String, std::io::Error> {
    std::fs::read_to_string(path)
}

async fn process(task: DocumentProcess, cx: Context, State(db): State<Db>) -> Result<(), BoxError> {
    let text = read(&task.path).await.map_err(TaskError::permanent)?;
    cx.progress(0.5, "parsed").await;
    cx.checkpoint()?;
    db.store(&task.knowledge_id, text).await?;
    Ok(())
}

fn document(path: &Path) -> DocumentProcess {
    DocumentProcess { tenant_id: 7, knowledge_id: "kn_42".into(), path: path.to_owned() }
}

const PRESET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../queues.toml");

#[tokio::test]
async fn the_sample_of_the_readme_works_as_it_is_written() {
    let here = tempfile::tempdir().unwrap();
    let page = here.path().join("page.md");
    std::fs::write(&page, "# A page").unwrap();
    let tasks = format!("sqlite://{}", here.path().join("tasks.db").display());
    let db = Db::default();

    let running = Orchestrator::load(PRESET)
        .unwrap()
        .broker(tasks.as_str())
        .state(db.clone())
        .handle(process)
        .start()
        .await
        .unwrap();

    let topology = running.topology().clone();
    let client = Client::connect(&tasks, &topology).await.unwrap();
    client.enqueue(&document(&page)).await.unwrap();
    let later =
        client.task(&document(&page)).delay(Duration::from_secs(90)).unique_for(HOUR).send().await.unwrap();
    let missing = client.enqueue(&document(&here.path().join("none.md"))).await.unwrap();

    running.until(|status| status.counts.completed == 1 && status.counts.archived == 1).await;
    assert_eq!(*db.0.lock().unwrap(), [("kn_42".to_owned(), "# A page".to_owned())]);

    let inspector = TaskInspector::connect(&tasks, &topology).await.unwrap();
    let failed = inspector.task(&missing.key).await.unwrap();
    assert_eq!(failed.last_error_class, Some(poolwright::core::Class::Permanent));
    assert!(inspector.cancel_task(&later.key).await.unwrap().is_done());
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_start_can_be_spawned() {
    let app = Orchestrator::load(PRESET).unwrap().broker("memory:").state(Db::default()).handle(process);
    let running = tokio::spawn(app.start()).await.unwrap().unwrap();
    running.shutdown().await.unwrap();
}
