//! The shared pool is elastic: idle, it takes enrichment's backlog; wanted, it gives way.

use acceptance::place::{send, send_many};
use acceptance::safely;
use acceptance::stage::{Part, Play};
use poolwright::core::Chance;

use crate::place;

fn queues(borrow: &str) -> String {
    format!(
        r#"
[pools.core]
workers = 2
queues = {{ default = 1 }}

[pools.enrichment]
workers = 3
queues = {{ summary = 1 }}

[pools.shared]
workers = 2
borrows = {{ default = 3, summary = 2 }}
borrow = "{borrow}"

[tasks."core:work"]
queue = "default"
[tasks."enrichment:work"]
queue = "summary"
"#
    )
}

async fn idle_shared_workers_help_and_give_way(borrow: &str) {
    let place = place(&queues(borrow));
    let play = Play::new();
    let types = ["core:work", "enrichment:work"];
    let app = place.playing(&play.stage, &types).chance(Chance::seeded(11)).start().await.unwrap();
    let client = app.client();

    // What its own workers can do, enrichment does alone.
    send_many(&client, "enrichment:work", "a", 3, |_| Part::Wait).await;
    play.journal.until(|log| log.on_stage("enrichment") == 3).await;
    assert_eq!(play.journal.look(|log| log.start_count()), 3);
    // Its backlog gets the shared workers: its capacity is both.
    send_many(&client, "enrichment:work", "b", 40, |_| Part::Wait).await;
    let status = app.until(|status| status.busy() == 5).await;
    let busy: Vec<_> = status.pools.iter().map(|pool| (pool.name.as_str(), pool.busy)).collect();
    assert_eq!(busy, [("core", 0), ("enrichment", 3), ("shared", 2)]);
    play.journal.until(|log| log.on_stage("shared") == 2).await;

    // Core's own workers are core's alone.
    send_many(&client, "core:work", "c", 2, |_| Part::Wait).await;
    play.journal.until(|log| log.on_stage("core") == 2).await;
    // A third task of core gets a shared worker as soon as one comes free, before enrichment's backlog is done.
    send(&client, "core:work", "c2", Part::Wait).await;
    while play.journal.look(|log| log.playing("shared", "default").is_empty()) {
        let (starts, ends) =
            play.journal.look(|log| (log.start_count(), log.playing("shared", "summary").into_iter().next()));
        play.stage.open(&ends.expect("the shared workers help one or the other"));
        play.journal.until(|log| log.start_count() > starts).await;
    }
    let playing = |pool, queue| {
        // Several threads start them, in any order.
        let mut ids = play.journal.look(|log| log.playing(pool, queue));
        ids.sort();
        ids
    };
    assert_eq!(playing("shared", "default"), ["c2"]);
    assert_eq!(playing("core", "default"), ["c0", "c1"], "it did not wait for core's own workers");
    assert_eq!(playing("enrichment", "summary"), ["a0", "a1", "a2"], "nor for enrichment's");

    play.stage.open_all();
    app.until(|status| status.counts.completed == 46).await;
    play.journal.look(|log| {
        assert_eq!((log.peak("core"), log.peak("enrichment"), log.peak("shared")), (2, 3, 2));
        assert!(log.starts().all(|start| start.pool != "core" || start.queue == "default"));
    });
    app.shutdown().await.unwrap();
}

#[tokio::test]
async fn idle_shared_workers_take_enrichments_backlog_and_give_way_when_they_always_borrow() {
    safely(idle_shared_workers_help_and_give_way("always")).await;
}

#[tokio::test]
async fn idle_shared_workers_take_enrichments_backlog_and_give_way_when_they_borrow_from_full_homes() {
    safely(idle_shared_workers_help_and_give_way("when_home_is_full")).await;
}
