//! An operator's cancel reaches what waits and what runs, in another process as well.

use acceptance::crew::Crew;
use acceptance::journal::What;
use acceptance::place::{Sums, send, sums};
use acceptance::safely;
use acceptance::stage::Part;
use poolwright::core::Class;
use poolwright::inspector::Cancelled;
use poolwright::ledger::{Filter, ListRequest};

use crate::{WORKER, place};

const QUEUES: &str = r#"
[pools.main]
workers = 1
queues = { work = 1 }

[tasks.work]
queue = "work"
[tasks.kept]
queue = "work"
on_cancel = "archive"
[tasks.protected]
queue = "work"
protected = true
"#;

#[tokio::test]
async fn a_cancel_reaches_waiting_and_running_tasks_of_another_process() {
    safely(async {
        let place = place(QUEUES);
        let crew = Crew::new(WORKER, &place);
        let (client, inspector) = (place.client().await, place.inspector().await);
        send(&client, "work", "running", Part::Wait).await;
        let mut worker = crew.worker().await;
        let pid = worker.pid;
        crew.journal.until(|log| log.starts_of("running") == 1).await;
        send(&client, "work", "waiting", Part::Ok).await;
        send(&client, "protected", "protected", Part::Ok).await;

        // What waits is gone; what is protected stays; what runs is told, and its worker takes the next one.
        assert_eq!(inspector.cancel_task("waiting").await.unwrap(), Cancelled::Deleted);
        assert_eq!(inspector.cancel_task("protected").await.unwrap(), Cancelled::Protected);
        assert_eq!(inspector.cancel_task("running").await.unwrap(), Cancelled::Signalled);
        crew.journal.until(|log| log.told(pid).completed == 1 && log.told(pid).discarded == 1).await;
        crew.journal.look(|log| {
            let asked: Vec<_> = log.events().iter().filter(|event| event.id == "running").collect();
            assert_eq!(asked[1].what, What::Asked(Some(Class::Cancelled)));
            assert_eq!((log.starts_of("protected"), log.starts_of("waiting")), (1, 0));
        });
        assert!(inspector.task("running").await.unwrap_err().is_not_found());
        let stores = place.stores().await;
        let letters = inspector.dead_letters(stores.ledger.clone());
        assert_eq!(letters.count(Filter::default()).await.unwrap(), 0, "a cancel leaves no letter");

        // Unless its type says so.
        send(&client, "kept", "kept", Part::Wait).await;
        crew.journal.until(|log| log.starts_of("kept") == 1).await;
        assert_eq!(inspector.cancel_task("kept").await.unwrap(), Cancelled::Signalled);
        crew.journal.until(|log| log.told(pid).letters == 1).await;
        let kept = letters.list(ListRequest::default()).await.unwrap().letters;
        assert_eq!((kept.len(), kept[0].class, kept[0].task_id.as_str()), (1, Class::Cancelled, "kept"));
        assert_eq!(inspector.cancel_task("kept").await.unwrap(), Cancelled::Finished);

        let sum = sums(&inspector, "work").await;
        assert_eq!(sum, Sums { archived: 1, processed: 3, failed: 1, ..Sums::default() });
        worker.open_all().await;
        worker.terminate().await;
        assert!(worker.ended().await.success());
    })
    .await;
}
