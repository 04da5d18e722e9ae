//! An upgrade that rolls: a task that this process does not know goes back and is run by the one that does.

use acceptance::crew::Crew;
use acceptance::place::{Sums, send, send_many, sums};
use acceptance::stage::{Part, Play};
use acceptance::{impatient, safely};
use poolwright::ledger::Filter;

use crate::{WORKER, place};

const QUEUES: &str = r#"
[retry.soon]
kind = "fixed"
delay = "20ms"

[pools.main]
workers = 2
queues = { work = 1 }

[task_defaults]
on_error = { no_handler = "soon" }
max_crashes = 0
max_retry = 0

[tasks.old]
queue = "work"
[tasks.new]
queue = "work"
"#;

#[tokio::test]
async fn a_type_that_a_process_does_not_know_waits_for_one_that_does() {
    safely(async {
        let place = place(QUEUES);
        let play = Play::new();
        let old = place.playing(&play.stage, &["old"]).tune(impatient).start().await.unwrap();
        let client = old.client();
        send_many(&client, "new", "new", 3, |_| Part::Ok).await;
        send_many(&client, "old", "old", 3, |_| Part::Ok).await;
        // Again and again, without harm: they have neither a retry nor a crash to spare.
        let status = old.until(|status| status.counts.no_handler >= 9 && status.counts.completed == 3).await;
        assert_eq!((status.counts.archived, status.counts.retried), (0, 0));

        // The new release starts beside it and knows both.
        let crew = Crew::new(WORKER, &place);
        let worker = crew.worker().await;
        crew.journal.until(|log| log.told(worker.pid).completed == 3).await;
        // It is taken back, and the old one goes on.
        worker.terminate().await;
        assert!(worker.ended().await.success());
        send(&client, "old", "old3", Part::Ok).await;
        old.until(|status| status.counts.completed == 4).await;

        assert_eq!(sums(&old.inspector(), "work").await, Sums { processed: 7, ..Sums::default() });
        crew.journal.look(|log| {
            let new: Vec<_> = log.starts().filter(|start| start.task_type == "new").collect();
            assert_eq!(new.len(), 3, "each ran once");
            assert!(
                new.iter().all(|start| !start.was_charged() && start.crashes == 0),
                "and for the first time"
            );
        });
        assert_eq!(play.journal.look(|log| log.starts().filter(|start| start.task_type == "new").count()), 0);
        assert_eq!(old.dead_letters().count(Filter::default()).await.unwrap(), 0);
        old.shutdown().await.unwrap();
    })
    .await;
}
