//! SIGTERM: what runs may end, what does not goes back where it was, and nothing is used up by it.

use std::collections::BTreeSet;

use acceptance::crew::Crew;
use acceptance::place::{Sums, send_many, sums};
use acceptance::safely;
use acceptance::stage::Part;
use poolwright::core::State as TaskState;
use poolwright::prelude::*;

use crate::{WORKER, place};

fn queues(workers: usize, grace: &str) -> String {
    format!(
        r#"
[runtime]
grace = "{grace}"

[pools.main]
workers = {workers}
queues = {{ work = 1 }}

[tasks.work]
queue = "work"
"#
    )
}

/// The ids of the waiting tasks, front of the queue first; none of them has used anything.
async fn waiting(inspector: &TaskInspector) -> Vec<String> {
    let page = inspector.tasks("work", TaskState::Pending, 1_000, None).await.unwrap();
    assert!(!page.has_more);
    let unused = page.tasks.iter().all(|task| (task.retried, task.deferrals, task.crashes) == (0, 0, 0));
    assert!(unused, "{:?}", page.tasks);
    page.tasks.iter().rev().map(|task| task.id.to_string()).collect()
}

#[tokio::test]
async fn what_a_stop_interrupts_goes_back_in_its_old_order_unused() {
    safely(async {
        let place = place(&queues(4, "100ms"));
        let crew = Crew::new(WORKER, &place);
        send_many(&place.client().await, "work", "t", 20, |_| Part::Wait).await;
        let worker = crew.worker().await;
        crew.journal.until(|log| log.on_stage("main") == 4).await;
        let pid = worker.pid;
        worker.terminate().await;
        assert_eq!(worker.ended().await.code(), Some(0));

        let told = crew.journal.look(|log| log.told(pid));
        assert_eq!((&*told.phase, told.released, told.unsettled, told.completed), ("ended", 4, 0, 0));
        let inspector = place.inspector().await;
        assert_eq!(sums(&inspector, "work").await, Sums { pending: 20, ..Sums::default() });
        let order: Vec<String> = (0..20).map(|at| format!("t{at}")).collect();
        assert_eq!(waiting(&inspector).await, order);
        assert!(inspector.servers().await.unwrap().is_empty());

        // One worker alone takes them as they stand.
        let mut worker = crew.worker_with(&[], &[("POOLWRIGHT_POOL_MAIN_WORKERS", "1")]).await;
        let pid = worker.pid;
        worker.open_all().await;
        crew.journal.until(|log| log.told(pid).completed == 20).await;
        crew.journal.look(|log| {
            let taken: Vec<_> = log.starts().filter(|start| start.pid == pid).collect();
            assert!(taken.iter().map(|start| &start.id).eq(&order), "{taken:?}");
            assert!(taken.iter().all(|start| !start.was_charged() && start.crashes == 0));
            assert_eq!(log.twin_tokens(), 0);
        });
    })
    .await;
}

#[tokio::test]
async fn a_stop_in_the_middle_of_work_loses_nothing_and_does_nothing_twice() {
    const TASKS: usize = 600;
    safely(async {
        let place = place(&queues(8, "1m"));
        let crew = Crew::new(WORKER, &place);
        send_many(&place.client().await, "work", "t", TASKS, |_| Part::Ok).await;
        let inspector = place.inspector().await;
        for moment in [40, 110, 75] {
            let worker = crew.worker().await;
            crew.journal.until(|log| log.starts_by(worker.pid) >= moment).await;
            worker.terminate().await;
            assert!(worker.ended().await.success());
            let now = sums(&inspector, "work").await;
            assert_eq!(now, Sums { pending: now.pending, processed: now.processed, ..Sums::default() });
            assert_eq!(now.pending + now.processed, TASKS as u64);
            let numbers = waiting(&inspector).await.into_iter().map(|id| id[1..].parse::<usize>().unwrap());
            assert!(numbers.is_sorted(), "what is left stands in its old order");
        }
        let worker = crew.worker().await;
        crew.journal.until_asked(async || sums(&inspector, "work").await.processed == TASKS as u64).await;
        worker.terminate().await;
        assert!(worker.ended().await.success());
        crew.journal.look(|log| assert_eq!((log.start_count(), log.started_tasks()), (TASKS, TASKS)));
        assert!(inspector.servers().await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_second_signal_ends_at_once_and_still_gives_back_what_ran() {
    safely(async {
        let place = place(&queues(6, "1h"));
        let crew = Crew::new(WORKER, &place);
        let parts = [Part::Wait, Part::Deaf, Part::Block];
        send_many(&place.client().await, "work", "t", 6, |at| parts[at % 3]).await;
        let worker = crew.worker().await;
        let pid = worker.pid;
        crew.journal.until(|log| log.on_stage("main") == 6).await;
        worker.terminate().await;
        crew.journal.until(|log| log.told(pid).phase == "draining").await;
        assert_eq!(crew.journal.look(|log| log.on_stage("main")), 6, "an hour of grace");
        worker.terminate().await;
        assert_eq!(worker.ended().await.code(), Some(0));

        let inspector = place.inspector().await;
        assert_eq!(sums(&inspector, "work").await, Sums { pending: 6, ..Sums::default() });
        let all: BTreeSet<String> = waiting(&inspector).await.into_iter().collect();
        assert_eq!(all.len(), 6);
        assert!(inspector.servers().await.unwrap().is_empty());
    })
    .await;
}
