//! `kill -9` at any moment: nothing is lost, nothing is settled twice, and a crash is no failure.

use acceptance::crew::Crew;
use acceptance::place::{Sums, send_many, sums};
use acceptance::safely;
use acceptance::stage::Part;
use poolwright::core::Chance;

use crate::{WORKER, place};

const TASKS: usize = 2_000;
const KILLS: usize = 10;

const QUEUES: &str = r#"
[runtime]
lease = "1s"

[pools.main]
workers = 8
queues = { work = 1 }

[tasks.work]
queue = "work"
retention = "1h"
max_crashes = 50
"#;

#[tokio::test]
async fn a_worker_killed_ten_times_loses_nothing_and_settles_nothing_twice() {
    safely(async {
        let place = place(QUEUES);
        let crew = Crew::new(WORKER, &place);
        // Every twentieth task is at work whenever the worker dies: it lasts until thirty others have begun.
        let part = |at| if at % 20 == 7 { Part::Long(30) } else { Part::Ok };
        send_many(&place.client().await, "work", "t", TASKS, part).await;

        let chance = Chance::seeded(0xdead);
        for _ in 0..KILLS {
            let moment = 20 + (chance.next() % 100) as usize;
            let worker = crew.worker().await;
            crew.journal.until(|log| log.starts_by(worker.pid) >= moment).await;
            worker.kill().await;
        }
        let mut survivor = crew.worker().await;
        survivor.open_all().await;
        let inspector = place.inspector().await;
        let all = TASKS as u64;
        crew.journal.until_asked(async || sums(&inspector, "work").await.completed == all).await;
        survivor.terminate().await;
        assert!(survivor.ended().await.success());

        let ended = Sums { completed: all, processed: all, ..Sums::default() };
        assert_eq!(sums(&inspector, "work").await, ended, "each task ended once, and none failed");
        crew.journal.look(|log| {
            assert_eq!(log.started_tasks(), TASKS, "the work of each was done");
            assert!(log.restarted_tasks() >= KILLS, "each kill met a task at work");
            assert_eq!(log.twin_tokens(), 0, "no two attempts had one token");
            assert!(log.starts().all(|start| !start.was_charged()), "a crash uses no retry");
            let again = log.starts().filter(|start| start.crashes > 0).count();
            assert!(again >= log.restarted_tasks(), "a task that runs again after a crash says so");
        });
    })
    .await;
}
