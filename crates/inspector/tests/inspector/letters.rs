//! Dead letters: looked at, replayed once, replayed again, deleted.

use std::sync::Arc;
use std::time::Duration;

use poolwright_broker::How;
use poolwright_core::{DeadLetter, DeadLetterSink, State, TaskKey, Tenant};
use poolwright_inspector::{Error, Letters, REPLAY_OF};
use poolwright_ledger::{DeadLetters, Filter, Ledger, LetterId, ListRequest};
use poolwright_store_memory::MemoryLedger;

use crate::stage::{START, Stage, document, typed};

struct Desk {
    stage: Stage,
    ledger: Arc<MemoryLedger>,
    letters: Letters,
}

impl Desk {
    fn new() -> Self {
        let stage = Stage::new();
        let ledger = MemoryLedger::new(Arc::new(stage.clock.clone()));
        let letters = stage.inspector.dead_letters(ledger.clone());
        Self { stage, ledger, letters }
    }

    /// Archives a task and records its letter.
    async fn bury(&self, task: poolwright_core::NewTask) -> LetterId {
        let key = self.stage.put_task(task, State::Archived).await;
        let record = self.stage.inspector.raw(&key).await.unwrap();
        let failed = record.failed.clone().unwrap();
        let letter = DeadLetter::of(&record, failed.class, &failed.error, failed.at);
        self.ledger.record(&[letter]).await.unwrap();
        let page = self.ledger.list(ListRequest::default()).await.unwrap();
        page.letters[0].id
    }

    async fn replayed_as(&self, id: LetterId) -> Option<TaskKey> {
        self.ledger.letter(id).await.unwrap().unwrap().replayed.map(|replayed| replayed.task)
    }
}

#[tokio::test]
async fn a_letter_shows_what_happened_and_not_the_payload() {
    let desk = Desk::new();
    let mut task = document("default", "a");
    task.tenant = Some(Tenant("7".into()));
    let id = desk.bury(task).await;
    let listing = desk.letters.list(ListRequest::default()).await.unwrap();
    assert_eq!((listing.letters.len(), listing.next), (1, None));
    assert_eq!(listing.letters[0], desk.letters.show(id).await.unwrap());
    let json = serde_json::to_value(&listing.letters[0]).unwrap();
    assert_eq!(
        json,
        serde_json::json!({
            "id": 1, "task_id": "a", "queue": "default", "task_type": "document:process", "class": "permanent",
            "last_error": "no use", "fail_count": 1, "failed_at": START.to_string(), "scope": "tenant",
            "scope_id": "7", "tenant_id": "7", "shown": { "knowledge_id": "kn_1", "knowledge_count": 2 },
        })
    );
    assert_eq!(desk.letters.count(Filter::default()).await.unwrap(), 1);
}

#[tokio::test]
async fn a_replay_enqueues_the_same_work_under_a_new_id_and_links_both() {
    let desk = Desk::new();
    let mut task = document("default", "a");
    task.headers.insert("traceparent".into(), "t".into());
    let id = desk.bury(task.clone()).await;
    let enqueued = desk.letters.replay(id).await.unwrap();
    assert_eq!((enqueued.how, enqueued.state), (How::Stored, State::Pending));
    assert_ne!(enqueued.key, task.key);
    let again = desk.stage.inspector.raw(&enqueued.key).await.unwrap();
    assert_eq!((&again.payload, &again.task_type), (&task.payload, &task.task_type));
    assert_eq!(
        (again.headers[REPLAY_OF].as_str(), again.headers["traceparent"].as_str()),
        ("default/a", "t")
    );
    assert_eq!((again.retried, again.max_retry), (0, 3));
    assert_eq!(desk.replayed_as(id).await, Some(enqueued.key.clone()));
    let view = desk.letters.show(id).await.unwrap().replayed.unwrap();
    assert_eq!((view.task_id, view.queue.as_str(), view.at), (enqueued.key.id, "default", START));
    assert_eq!(desk.stage.state(&task.key).await, Some(State::Archived), "the failed task stays");
}

#[tokio::test]
async fn a_second_replay_is_refused_unless_insisted_on() {
    let desk = Desk::new();
    let id = desk.bury(document("default", "a")).await;
    let first = desk.letters.replay(id).await.unwrap();
    let error = desk.letters.replay(id).await.unwrap_err();
    assert_eq!(error, Error::Replayed { letter: id, task: first.key.clone() });
    let second = desk.letters.replay_again(id).await.unwrap();
    assert_ne!(first.key, second.key);
    assert_eq!(desk.replayed_as(id).await, Some(second.key));
}

#[tokio::test]
async fn a_replay_that_was_interrupted_before_its_mark_is_not_done_again() {
    let desk = Desk::new();
    let id = desk.bury(document("default", "a")).await;
    let first = desk.letters.replay(id).await.unwrap();
    // The same letter without its mark: as if the process had died between the two stores.
    let letter = desk.letters.raw(id).await.unwrap().letter;
    desk.letters.delete(id).await.unwrap();
    desk.ledger.record(&[letter]).await.unwrap();
    let id = LetterId(2);
    let found = desk.letters.replay(id).await.unwrap();
    assert_eq!(found.key, first.key);
    assert_eq!(desk.replayed_as(id).await, Some(first.key));
    assert_eq!(desk.stage.inspector.queue("default").await.unwrap().pending, 1);
}

#[tokio::test]
async fn a_type_that_runs_one_at_a_time_keeps_its_id() {
    let desk = Desk::new();
    let id = desk.bury(typed("low", "wiki-kb_1", "wiki:finalize")).await;
    let enqueued = desk.letters.replay(id).await.unwrap();
    assert_eq!((enqueued.key.id.as_str(), enqueued.how), ("wiki-kb_1", How::Replaced));
    let again = desk.letters.replay_again(id).await.unwrap();
    assert_eq!((again.key, again.how), (enqueued.key, How::Coalesced));
}

#[tokio::test]
async fn a_replay_goes_to_the_queue_that_its_type_has_now() {
    let desk = Desk::new();
    let moved = desk.bury(document("elsewhere", "a")).await;
    assert_eq!(desk.letters.replay(moved).await.unwrap().key.queue, "default");
    let unknown = desk.bury(typed("elsewhere", "b", "unheard:of")).await;
    assert_eq!(desk.letters.replay(unknown).await.unwrap().key.queue, "elsewhere");
}

#[tokio::test]
async fn all_letters_that_match_are_replayed_once() {
    let desk = Desk::new();
    for n in 0..60 {
        desk.bury(document("default", &format!("t{n}"))).await;
    }
    desk.bury(typed("low", "other", "kb:delete")).await;
    let filter = Filter { task_type: Some("document:process".into()), ..Filter::default() };
    let report = desk.letters.replay_all(filter.clone()).await.unwrap();
    assert_eq!((report.replayed, report.refused), (60, vec![]));
    assert_eq!(desk.stage.inspector.queue("default").await.unwrap().pending, 60);
    assert_eq!(desk.letters.replay_all(filter).await.unwrap().replayed, 0);
}

#[tokio::test]
async fn a_letter_that_is_not_there_is_told() {
    let desk = Desk::new();
    let error = desk.letters.replay(LetterId(9)).await.unwrap_err();
    assert_eq!(error.to_string(), "no dead letter 9");
    assert!(error.is_not_found());
    assert!(!desk.letters.delete(LetterId(9)).await.unwrap());
}

#[tokio::test]
async fn the_mark_says_when() {
    let desk = Desk::new();
    let id = desk.bury(document("default", "a")).await;
    desk.stage.clock.advance(Duration::from_secs(5));
    desk.letters.replay(id).await.unwrap();
    let stored = desk.letters.raw(id).await.unwrap();
    assert_eq!(stored.replayed.unwrap().at, START + Duration::from_secs(5));
    assert_eq!(desk.ledger.describe(), "memory");
}
