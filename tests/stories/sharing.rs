//! Several processes on one file: each task is done by one of them, once.

use acceptance::crew::Crew;
use acceptance::place::{Sums, sums};
use acceptance::safely;
use acceptance::stage::Part;

use crate::{WORKER, place};

const TASKS_EACH: usize = 2_500;

const QUEUES: &str = r#"
[pools.main]
workers = 8
threads = 2
queues = { work = 1 }

[tasks.work]
queue = "work"
"#;

#[tokio::test]
async fn two_producers_and_two_workers_share_a_file_and_each_task_runs_once() {
    safely(async {
        let place = place(QUEUES);
        let crew = Crew::new(WORKER, &place);
        let workers = [crew.worker().await, crew.worker().await];
        let producers = ["a", "b"].map(|prefix| crew.producer("work", prefix, TASKS_EACH, Part::Ok));
        for producer in producers {
            let pid = producer.pid;
            assert!(producer.ended().await.success());
            assert_eq!(crew.journal.look(|log| log.sent(pid)), TASKS_EACH as u64);
        }
        let inspector = place.inspector().await;
        let all = 2 * TASKS_EACH as u64;
        crew.journal.until_asked(async || sums(&inspector, "work").await.processed == all).await;
        assert_eq!(sums(&inspector, "work").await, Sums { processed: all, ..Sums::default() });

        let pids = [workers[0].pid, workers[1].pid];
        for worker in workers {
            worker.terminate().await;
            assert!(worker.ended().await.success());
        }
        crew.journal.look(|log| {
            assert_eq!((log.start_count(), log.started_tasks()), (2 * TASKS_EACH, 2 * TASKS_EACH));
            assert_eq!(pids.map(|pid| log.told(pid).completed).iter().sum::<u64>(), all);
            assert!(pids.iter().all(|pid| log.told(*pid).completed > 0), "both had their share");
        });
        assert!(inspector.servers().await.unwrap().is_empty());
    })
    .await;
}
