//! Handlers that behave as badly as they can: no other pool feels it, and every slot comes back.

use acceptance::place::{Sums, play, send, send_many, sums};
use acceptance::stage::{Part, Play};
use acceptance::{impatient, safely};
use poolwright::prelude::*;

use crate::place;

const QUEUES: &str = r#"
[runtime]
stop_grace = "50ms"

[pools.bad]
workers = 4
queues = { bad = 1 }
[pools.good]
workers = 2
queues = { good = 1 }

[tasks.bad]
queue = "bad"
max_retry = 0
timeout = "1s"
[tasks.good]
queue = "good"
"#;

#[tokio::test]
async fn handlers_that_block_panic_overstay_and_forget_slow_no_other_pool_and_leak_no_slot() {
    safely(async {
        let place = place(QUEUES);
        let theatre = Play::new();
        let app = place.playing(&theatre.stage, &["bad", "good"]).tune(impatient).start().await.unwrap();
        let client = app.client();
        let misdeeds = [Part::Panic, Part::Deaf, Part::Forget];
        send_many(&client, "bad", "misdeed", 12, |at| misdeeds[at % 3]).await;
        // Eight of them panic or overstay, and four leave work behind.
        app.until(|status| status.counts.archived == 8 && status.counts.completed == 4).await;
        send_many(&client, "bad", "block", 4, |_| Part::Block).await;
        app.until(|status| status.pools[0].stalled == 4).await;

        // Every worker of the pool is stuck, and work waits behind it.
        send(&client, "bad", "behind", Part::Ok).await;
        send_many(&client, "good", "good", 50, |_| Part::Ok).await;
        app.until(|status| status.counts.completed == 54).await;
        theatre.journal.look(|log| {
            assert_eq!((log.on_stage("bad"), log.starts_of("behind")), (4, 0));
        });
        let status = app.status();
        assert_eq!((status.pools[0].busy, status.pools[0].stalled, status.pools[1].completed), (4, 4, 50));

        // They return, and what they say counts: the work was done.
        (0..4).for_each(|at| theatre.stage.open(&format!("block{at}")));
        app.until(|status| status.counts.completed == 59 && status.pools[0].busy == 0).await;
        assert_eq!(app.status().pools[0].stalled, 0);

        // All four workers are there again, and not one more.
        let no_limit = Duration::ZERO;
        for at in 0..6 {
            play(&client, "bad", &format!("slot{at}"), Part::Wait).timeout(no_limit).send().await.unwrap();
        }
        theatre.journal.until(|log| log.on_stage("bad") == 4).await;
        assert_eq!(app.until(|status| status.pools[0].busy == 4).await.pools[0].workers, 4);
        theatre.stage.open_all();
        app.until(|status| status.counts.completed == 65).await;
        theatre.journal.look(|log| assert_eq!((log.peak("bad"), log.peak("good") <= 2), (4, true)));
        theatre.journal.until(|log| log.count(acceptance::journal::What::Forgotten) == 4).await;

        let inspector = app.inspector();
        let bad = Sums { archived: 8, processed: 23, failed: 8, ..Sums::default() };
        assert_eq!(sums(&inspector, "bad").await, bad);
        assert_eq!(sums(&inspector, "good").await, Sums { processed: 50, ..Sums::default() });
        app.shutdown().await.unwrap();
    })
    .await;
}
