//! Work that runs one at a time for each thing: a request during a run is not lost, and an archived holder blocks nobody.

use std::sync::Arc;

use acceptance::place::{Sums, sums};
use acceptance::safely;
use acceptance::stage::{Part, Play, Stage};
use poolwright::broker::How;
use poolwright::prelude::*;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::place;

const QUEUES: &str = r#"
[pools.wiki]
workers = 4
queues = { wiki = 1 }

[tasks."wiki:finalize"]
queue = "wiki"
id = "wiki-finalize-{knowledge_base_id}"
fields = ["knowledge_base_id"]
on_conflict = "run_again"
max_retry = 0
"#;

#[derive(Serialize, Deserialize, TaskType)]
#[task("wiki:finalize")]
struct Finalize {
    knowledge_base_id: String,
    edition: u32,
    part: Part,
}

async fn finalize(
    task: Finalize,
    cx: Context,
    State(stage): State<Arc<Stage>>,
    State(editions): State<UnboundedSender<u32>>,
) -> Result<(), BoxError> {
    editions.send(task.edition)?;
    stage.play(task.part, &cx).await
}

#[tokio::test]
async fn a_request_during_a_run_is_not_lost_and_an_archived_holder_does_not_block() {
    safely(async {
        let place = place(QUEUES);
        let play = Play::new();
        let (editions, mut begun) = unbounded_channel::<u32>();
        let orchestrator = place.orchestrator().state(Arc::clone(&play.stage)).state(editions);
        let app = orchestrator.handle(finalize).start().await.unwrap();
        let (client, inspector) = (app.client(), app.inspector());
        let ask = async |edition, part| {
            let task = Finalize { knowledge_base_id: "kb".into(), edition, part };
            client.enqueue(&task).await.unwrap().how
        };

        assert_eq!(ask(1, Part::Wait).await, How::Stored);
        assert_eq!(begun.recv().await, Some(1));
        // While it runs: the last request counts, and one at a time it stays.
        assert_eq!(ask(2, Part::Ok).await, How::RunsAgain);
        assert_eq!(ask(3, Part::Ok).await, How::RunsAgain);
        assert_eq!(play.journal.look(|log| log.on_stage("wiki")), 1);
        play.stage.open("wiki-finalize-kb");
        assert_eq!(begun.recv().await, Some(3));
        app.until(|status| status.counts.completed == 2).await;

        // While it waits: that one will do.
        inspector.pause("wiki", "to let it wait").await.unwrap();
        assert_eq!(ask(4, Part::Permanent).await, How::Stored);
        assert_eq!(ask(5, Part::Ok).await, How::Coalesced);
        inspector.resume("wiki").await.unwrap();
        assert_eq!(begun.recv().await, Some(4));

        // It failed for good, and stands in nobody's way.
        app.until(|status| status.counts.letters_recorded == 1).await;
        assert_eq!(sums(&inspector, "wiki").await.archived, 1);
        assert_eq!(ask(6, Part::Ok).await, How::Replaced);
        assert_eq!(begun.recv().await, Some(6));
        app.until(|status| status.counts.completed == 3).await;

        assert_eq!(play.journal.look(|log| log.peak("wiki")), 1, "never beside itself");
        let ended = Sums { processed: 4, failed: 1, ..Sums::default() };
        assert_eq!(sums(&inspector, "wiki").await, ended);
        app.shutdown().await.unwrap();
        assert_eq!(begun.recv().await, None, "nothing else ran");
    })
    .await;
}
