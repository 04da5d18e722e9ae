//! A clock that leaps twelve hours at a time under two workers: what is due runs once, and what runs goes on.

use std::sync::Arc;

use acceptance::impatient;
use acceptance::place::{Place, Sums, play, send, send_many, sums};
use acceptance::stage::{Part, Play};
use poolwright::core::Clock;
use poolwright::core::clock::{ManualClock, SystemClock};
use poolwright::prelude::*;

use crate::{minutes, now, patiently, secs_since};

/// Tasks that come due in each leap: they keep the workers busy until the next one, so that every loop has its turn.
const DUE: usize = 2_000;
const LEAP: Duration = Duration::from_secs(12 * 3_600);

const QUEUES: &str = r#"
[runtime]
lease = "1s"
heartbeat = "1s"

[pools.main]
workers = 4
queues = { work = 1 }

[tasks.work]
queue = "work"
timeout = "0s"
retention = "1h"
max_retry = 0
max_crashes = 0
"#;

#[tokio::test]
async fn soak_leaps_of_the_clock() {
    patiently(async {
        let place = Place::new(QUEUES);
        let theatre = Play::new();
        let clock = ManualClock::at(SystemClock.now());
        let worker = || {
            let orchestrator = place.playing(&theatre.stage, &["work"]).clock(Arc::new(clock.clone()));
            orchestrator
                .tune(impatient)
                .tune(|options| options.sweep_every = Duration::from_millis(100))
                .start()
        };
        let apps = [worker().await.unwrap(), worker().await.unwrap()];
        let (client, inspector) = (apps[0].client(), apps[0].inspector());
        // They run through all leaps.
        send_many(&client, "work", "steady", 4, |_| Part::Wait).await;
        theatre.journal.until(|log| log.on_stage("main") == 4).await;

        let begun = now();
        let mut leaps = 0;
        while now() < begun + minutes() {
            let mut batch = client.batch();
            for at in 0..DUE {
                let task = play(&client, "work", &format!("due{leaps}-{at}"), Part::Ok);
                batch.push(task.delay(LEAP / 2));
            }
            assert!(batch.send().await.iter().all(Result::is_ok));
            send(&client, "work", &format!("now{leaps}"), Part::Ok).await;
            leaps += 1;
            let started = 4 + leaps * (DUE + 1);
            theatre.journal.until(|log| log.start_count() >= started - DUE).await;
            clock.advance(LEAP);
            theatre.journal.until(|log| log.start_count() >= started).await;
        }
        let secs = secs_since(begun);
        theatre.stage.open_all();
        let all = (4 + leaps * (DUE + 1)) as u64;
        let completed = || apps.iter().map(|app| app.status().counts.completed).sum::<u64>();
        while completed() < all {
            let now = apps.each_ref().map(|app| app.status().counts.completed);
            tokio::select! {
                _ = apps[0].until(|status| status.counts.completed > now[0]) => {}
                _ = apps[1].until(|status| status.counts.completed > now[1]) => {}
            }
        }
        let ended = sums(&inspector, "work").await;
        assert_eq!(ended, Sums { processed: all, completed: ended.completed, ..Sums::default() });
        theatre.journal.look(|log| {
            assert_eq!(
                (log.start_count(), log.started_tasks()),
                (all as usize, all as usize),
                "each ran once"
            );
        });
        let counts = apps.each_ref().map(|app| app.status().counts);
        assert!(
            counts.iter().all(|counts| (counts.lease_lost, counts.crashed_taken_over) == (0, 0)),
            "{counts:?}"
        );
        println!("figures: leaps leaps={leaps} hours={} tasks={all} secs={secs:.1}", leaps * 12);
        for app in apps {
            app.shutdown().await.unwrap();
        }
    })
    .await;
}
