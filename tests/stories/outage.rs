//! A store that does not answer for a while: what runs goes on, results are kept, and nothing is run twice.

use std::sync::Arc;

use acceptance::place::{Place, Sums, send_many, sums};
use acceptance::stage::{Part, Play};
use acceptance::{impatient, safely};
use poolwright::Stores;
use poolwright::core::Clock;
use poolwright::core::clock::{ManualClock, SystemClock};
use poolwright::prelude::*;
use rusqlite::Connection;

const LEASE: Duration = Duration::from_secs(1);

const QUEUES: &str = r#"
[runtime]
lease = "1s"

[pools.main]
workers = 4
queues = { work = 1 }

[tasks.work]
queue = "work"
"#;

/// The store, where a locked file is an outage after a moment and not after half a minute.
fn hasty(place: &Place) -> String {
    format!("{}&busy_wait_ms=20", place.url())
}

/// Another program that holds the file's write lock: nobody can write until it is dropped.
struct Squatter(Connection);

impl Squatter {
    fn sits_on(place: &Place) -> Self {
        let connection = Connection::open(place.database()).unwrap();
        connection.busy_timeout(Duration::from_secs(30)).unwrap();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        Self(connection)
    }

    fn leaves(self) {
        self.0.execute_batch("ROLLBACK").unwrap();
    }
}

#[tokio::test]
async fn results_are_kept_through_an_outage_and_nothing_is_run_twice_by_anybody() {
    safely(async {
        let place = Place::new(QUEUES);
        let (mine, other) = (Play::new(), Play::new());
        // One clock for both, so that leases expire when the story says so.
        let clock = ManualClock::at(SystemClock.now());
        let worker = |play: &Play| {
            let orchestrator = place.playing(&play.stage, &["work"]).broker(hasty(&place));
            orchestrator.clock(Arc::new(clock.clone())).tune(impatient)
        };
        let app = worker(&mine).start().await.unwrap();
        send_many(&app.client(), "work", "t", 4, |_| Part::Wait).await;
        mine.journal.until(|log| log.on_stage("main") == 4).await;
        let neighbour = worker(&other).start().await.unwrap();

        let squatter = Squatter::sits_on(&place);
        app.until(|status| status.store_is_away).await;
        neighbour.until(|status| status.store_is_away).await;
        mine.stage.open_all();
        mine.journal.until(|log| log.on_stage("main") == 0).await;
        // Their leases expire while nobody can extend them.
        clock.advance(LEASE * 3);
        let status = app.status();
        assert_eq!((status.busy(), status.counts.completed), (4, 0), "results wait, and keep their workers");
        squatter.leaves();

        app.until(|status| status.counts.completed == 4 && !status.store_is_away).await;
        neighbour.until(|status| !status.store_is_away).await;
        let inspector = place.inspector().await;
        assert_eq!(sums(&inspector, "work").await, Sums { processed: 4, ..Sums::default() });
        for (app, starts) in [(app, mine.journal.look(|log| log.start_count())), (neighbour, 0)] {
            let counts = app.status().counts;
            assert_eq!((counts.lease_lost, counts.crashed_taken_over), (0, 0));
            assert_eq!(counts.claimed as usize, starts);
            app.shutdown().await.unwrap();
        }
        assert_eq!(other.journal.look(|log| log.start_count()), 0);
    })
    .await;
}

#[tokio::test]
async fn a_worker_that_starts_during_an_outage_begins_when_it_is_over() {
    safely(async {
        let place = Place::new(QUEUES);
        let play = Play::new();
        let stores = Stores::open(&hasty(&place), None).await.unwrap();
        let client = Client::new(stores.broker.clone(), place.topology().clone());
        send_many(&client, "work", "t", 8, |_| Part::Ok).await;
        let squatter = Squatter::sits_on(&place);
        let app = place.playing(&play.stage, &["work"]).stores(stores).tune(impatient).start().await.unwrap();
        app.until(|status| status.store_is_away).await;
        squatter.leaves();
        app.until(|status| status.counts.completed == 8).await;
        assert_eq!(play.journal.look(|log| log.start_count()), 8);
        app.shutdown().await.unwrap();
    })
    .await;
}
