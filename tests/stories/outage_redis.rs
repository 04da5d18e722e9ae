//! A server that hangs, dies with its data or without: what runs goes on, results are kept, and nothing is stuck.

use acceptance::place::{Place, Sums, send_many, sums};
use acceptance::stage::{Part, Play};
use acceptance::{impatient, safely};
use poolwright::prelude::*;
use poolwright_testbed::Data;

use crate::place;

const QUEUES: &str = r#"
[runtime]
lease = "1s"

[pools.main]
workers = 4
queues = { work = 1 }

[tasks.work]
queue = "work"
"#;

async fn worker(place: &Place, play: &Play) -> Running {
    place.playing(&play.stage, &["work"]).tune(impatient).start().await.unwrap()
}

/// Four tasks that run until their gates open.
async fn four_on_stage(app: &Running, play: &Play) {
    send_many(&app.client(), "work", "t", 4, |_| Part::Wait).await;
    play.journal.until(|log| log.on_stage("main") == 4).await;
}

#[tokio::test]
async fn a_server_that_hangs_for_longer_than_a_lease_costs_nobody_his_task() {
    safely(async {
        let place = place(QUEUES);
        let server = place.server().unwrap();
        let (mine, other) = (Play::new(), Play::new());
        let app = worker(&place, &mine).await;
        four_on_stage(&app, &mine).await;
        let neighbour = worker(&place, &other).await;

        // A call takes as long as a lease to be given up.
        server.pause().unwrap();
        app.until(|status| status.store_is_away).await;
        neighbour.until(|status| status.store_is_away).await;
        mine.stage.open_all();
        mine.journal.until(|log| log.on_stage("main") == 0).await;
        server.resume().unwrap();

        app.until(|status| status.counts.completed == 4 && !status.store_is_away).await;
        neighbour.until(|status| !status.store_is_away).await;
        assert_eq!(sums(&place.inspector().await, "work").await, Sums { processed: 4, ..Sums::default() });
        assert_eq!(other.journal.look(|log| log.start_count()), 0, "nothing was run twice");
        for app in [app, neighbour] {
            let counts = app.status().counts;
            assert_eq!((counts.lease_lost, counts.crashed_taken_over), (0, 0));
            app.shutdown().await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_that_dies_and_comes_back_with_its_data_loses_nothing() {
    safely(async {
        let place = place(QUEUES);
        let server = place.server().unwrap();
        let play = Play::new();
        let app = worker(&place, &play).await;
        four_on_stage(&app, &play).await;
        send_many(&app.client(), "work", "w", 4, |_| Part::Ok).await;

        server.kill();
        app.until(|status| status.store_is_away).await;
        play.stage.open_all();
        play.journal.until(|log| log.on_stage("main") == 0).await;
        server.restart(Data::Kept).await.unwrap();

        app.until(|status| status.counts.completed == 8 && !status.store_is_away).await;
        assert_eq!(sums(&place.inspector().await, "work").await, Sums { processed: 8, ..Sums::default() });
        assert_eq!(play.journal.look(|log| (log.started_tasks(), log.restarted_tasks())), (8, 0));
        app.shutdown().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_server_that_comes_back_empty_is_worked_on_as_a_new_one() {
    safely(async {
        let place = place(QUEUES);
        let server = place.server().unwrap();
        let play = Play::new();
        let app = worker(&place, &play).await;
        four_on_stage(&app, &play).await;

        server.kill();
        app.until(|status| status.store_is_away).await;
        server.restart(Data::Lost).await.unwrap();
        app.until(|status| !status.store_is_away).await;
        // Their tasks are gone with the data: there is nothing to settle, and nothing to wait for.
        play.stage.open_all();
        app.until(|status| status.busy() == 0).await;
        send_many(&app.client(), "work", "n", 4, |_| Part::Ok).await;
        app.until(|status| status.counts.completed == 4).await;
        assert_eq!(sums(&place.inspector().await, "work").await, Sums { processed: 4, ..Sums::default() });
        app.shutdown().await.unwrap();
    })
    .await;
}
