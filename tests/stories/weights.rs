//! Queues of one pool are drawn by weight.

use acceptance::place::send_many;
use acceptance::safely;
use acceptance::stage::{Part, Play};
use poolwright::Stores;
use poolwright::client::Client;
use poolwright::core::Chance;
use poolwright::core::clock::SystemClock;

use crate::place;

fn queues(workers: usize) -> String {
    format!(
        r#"
[pools.main]
workers = {workers}
threads = 2
queues = {{ heavy = 3, light = 1 }}

[tasks."heavy:work"]
queue = "heavy"
[tasks."light:work"]
queue = "light"
"#
    )
}

const TYPES: [&str; 2] = ["heavy:work", "light:work"];

#[tokio::test]
async fn a_queue_of_weight_three_beside_one_of_weight_one_gets_three_quarters() {
    const LOOKED_AT: usize = 4_000;
    safely(async {
        let place = place(&queues(8));
        let play = Play::new();
        let client = place.client().await;
        // Both last longer than anybody looks.
        send_many(&client, TYPES[0], "heavy", 3_400, |_| Part::Ok).await;
        send_many(&client, TYPES[1], "light", 1_400, |_| Part::Ok).await;
        let app = place.playing(&play.stage, &TYPES).chance(Chance::seeded(3)).start().await.unwrap();
        play.journal.until(|log| log.start_count() >= LOOKED_AT).await;
        let heavy = play
            .journal
            .look(|log| log.starts().take(LOOKED_AT).filter(|start| start.queue == "heavy").count());
        let percent = heavy as f64 * 100.0 / LOOKED_AT as f64;
        assert!((72.0..=78.0).contains(&percent), "{percent} % from the queue with weight 3 of 4");
        app.stop_now();
        app.shutdown().await.unwrap();
    })
    .await;
}

/// The order in which one worker takes tasks, by queue.
async fn order(seed: u64, tasks: usize) -> Vec<String> {
    let place = place(&queues(1));
    let play = Play::new();
    // The store draws its tokens elsewhere, so that the seed decides nothing but what the worker draws.
    let stores = Stores::memory(std::sync::Arc::new(SystemClock), Chance::seeded(1));
    let client = Client::new(stores.broker.clone(), place.topology().clone());
    for queue in TYPES {
        send_many(&client, queue, queue, tasks, |_| Part::Ok).await;
    }
    let orchestrator = place.playing(&play.stage, &TYPES).stores(stores).chance(Chance::seeded(seed));
    let app = orchestrator.start().await.unwrap();
    play.journal.until(|log| log.start_count() >= tasks).await;
    app.stop_now();
    app.shutdown().await.unwrap();
    play.journal.look(|log| log.starts().take(tasks).map(|start| start.queue.clone()).collect())
}

#[tokio::test]
async fn the_same_seed_draws_the_same_order() {
    safely(async {
        let (first, again, other) = (order(7, 300).await, order(7, 300).await, order(8, 300).await);
        assert_eq!(first, again);
        assert_ne!(first, other);
    })
    .await;
}
