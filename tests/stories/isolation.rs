//! Pools are walls: enrichment is stuck to its last worker, and core does not notice.

use acceptance::journal::What;
use acceptance::place::{send_many, sums};
use acceptance::safely;
use acceptance::stage::{Part, Play};

use crate::place;

const WAITING: usize = 10_000;
const CORE_TASKS: usize = 200;

fn queues(borrow: &str) -> String {
    format!(
        r#"
[pools.core]
workers = 8
queues = {{ default = 1 }}

[pools.enrichment]
workers = 12
queues = {{ summary = 1 }}

[pools.shared]
workers = 6
borrows = {{ default = 3, summary = 2 }}
borrow = "{borrow}"

[tasks."core:work"]
queue = "default"
[tasks."enrichment:work"]
queue = "summary"
timeout = "0s"
"#
    )
}

async fn no_core_task_waits_for_enrichment(borrow: &str) {
    let place = place(&queues(borrow));
    let play = Play::new();
    let client = place.client().await;
    // Half of them wait as they should, half block a thread each.
    let part = |at| if at % 2 == 0 { Part::Wait } else { Part::Block };
    send_many(&client, "enrichment:work", "enrichment", WAITING, part).await;
    let app = place.playing(&play.stage, &["core:work", "enrichment:work"]).start().await.unwrap();
    // The shared workers are enrichment's, too, as long as nobody else wants them.
    play.journal.until(|log| log.on_stage("enrichment") == 12 && log.on_stage("shared") == 6).await;

    send_many(&client, "core:work", "core", CORE_TASKS, |_| Part::Ok).await;
    app.until(|status| status.counts.completed == CORE_TASKS as u64).await;
    play.journal.look(|log| {
        let core: Vec<_> = log.starts().filter(|start| start.queue == "default").collect();
        assert_eq!(core.len(), CORE_TASKS);
        assert!(core.iter().all(|start| ["core", "shared"].contains(&&*start.pool)));
        let ended = log.events().iter().filter(|event| event.what == What::End && event.queue == "summary");
        assert_eq!(ended.count(), 0, "enrichment is as stuck as before");
        assert_eq!((log.peak("enrichment"), log.peak("shared")), (12, 6));
    });
    let waiting = sums(&app.inspector(), "summary").await;
    assert_eq!((waiting.active, waiting.pending), (18, WAITING as u64 - 18));

    app.stop_now();
    play.stage.open_all();
    app.shutdown().await.unwrap();
}

#[tokio::test]
async fn no_core_task_waits_for_a_stuck_enrichment_when_the_shared_pool_always_helps() {
    safely(no_core_task_waits_for_enrichment("always")).await;
}

#[tokio::test]
async fn no_core_task_waits_for_a_stuck_enrichment_when_the_shared_pool_helps_full_homes() {
    safely(no_core_task_waits_for_enrichment("when_home_is_full")).await;
}
