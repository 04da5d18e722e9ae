//! What an operator does, and what is refused.

use std::time::Duration;

use poolwright_broker::Error as StoreError;
use poolwright_core::{Class, Settlement, State, TaskKey, When};
use poolwright_inspector::{Cancelled, Error};

use crate::stage::{START, Stage, typed};

fn held(task: &poolwright_core::TaskRecord) -> poolwright_broker::Held {
    poolwright_broker::Held::of(task).unwrap()
}

#[tokio::test]
async fn a_waiting_task_is_run_now() {
    let stage = Stage::new();
    for state in [State::Scheduled, State::Retry, State::Archived, State::Completed] {
        let key = stage.put("default", state.as_str(), state).await;
        assert_eq!(stage.inspector.run_now(&key).await.unwrap(), state);
        assert_eq!(stage.state(&key).await, Some(State::Pending));
        stage.claim("default").await;
    }
}

#[tokio::test]
async fn an_act_that_the_state_does_not_allow_is_refused_with_those_that_it_does() {
    let stage = Stage::new();
    let key = stage.put("default", "a", State::Active).await;
    let error = stage.inspector.delete(&key).await.unwrap_err();
    assert_eq!(error.to_string(), "task default/a is active: delete is not possible, allowed are: cancel");
    assert!(matches!(stage.inspector.run_now(&key).await, Err(Error::NotAllowed { .. })));
    assert!(matches!(stage.inspector.archive(&key, "x").await, Err(Error::NotAllowed { .. })));
    assert_eq!(stage.state(&key).await, Some(State::Active));
}

#[tokio::test]
async fn an_archived_task_says_who_did_it_and_why() {
    let stage = Stage::new();
    let key = stage.put("default", "a", State::Pending).await;
    assert_eq!(stage.inspector.archive("a", "the customer left").await.unwrap(), State::Pending);
    let task = stage.inspector.task(&key).await.unwrap();
    assert_eq!((task.state, task.last_error_class), (State::Archived, Some(Class::Operator)));
    assert_eq!(task.last_error.as_deref(), Some("the customer left"));
    assert_eq!(stage.inspector.delete(&key).await.unwrap(), State::Archived);
    assert_eq!(stage.state(&key).await, None);
}

#[tokio::test]
async fn a_protected_task_is_neither_cancelled_nor_deleted_but_archived() {
    let stage = Stage::new();
    let key = stage.put_task(typed("low", "a", "kb:delete"), State::Pending).await;
    let error = stage.inspector.delete(&key).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "task low/a is protected: a waiting or running `kb:delete` is neither cancelled nor deleted"
    );
    assert_eq!(stage.inspector.cancel_task(&key).await.unwrap(), Cancelled::Protected);
    assert_eq!(stage.state(&key).await, Some(State::Pending));
    let error = stage.inspector.delete_all("maintenance", State::Pending).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "queue low takes protected types (kb:delete): delete its pending tasks one by one"
    );
    stage.inspector.archive(&key, "by hand").await.unwrap();
    assert_eq!(stage.inspector.delete_all("maintenance", State::Archived).await.unwrap(), 1);
}

#[tokio::test]
async fn a_cancelled_task_that_waits_is_gone() {
    let stage = Stage::new();
    for state in [State::Pending, State::Scheduled, State::Retry] {
        let key = stage.put("default", state.as_str(), state).await;
        assert_eq!(stage.inspector.cancel_task(&key).await.unwrap(), Cancelled::Deleted, "{state}");
        assert_eq!(stage.state(&key).await, None);
    }
}

#[tokio::test]
async fn a_cancelled_task_that_runs_is_flagged_and_its_worker_is_told() {
    let stage = Stage::new();
    let mut feed = stage.broker.subscribe().await.unwrap();
    let key = stage.put("default", "a", State::Active).await;
    assert_eq!(stage.inspector.cancel_task("a").await.unwrap(), Cancelled::Signalled);
    assert_eq!(feed.next().await.unwrap().key, key);
    let task = stage.inspector.task(&key).await.unwrap();
    assert!(task.cancel_requested);
}

#[tokio::test]
async fn a_cancelled_task_that_goes_back_is_discarded_by_the_next_claim() {
    let stage = Stage::new();
    stage.put_task(typed("default", "a", "document:process"), State::Pending).await;
    let task = stage.claim("default").await;
    stage.inspector.cancel_task("a").await.unwrap();
    stage.broker.settle(vec![(held(&task), Settlement::Release)]).await.unwrap().remove(0).unwrap();
    assert!(stage.try_claim("default").await.is_none());
    assert_eq!(stage.state(&task.key).await, None);
}

#[tokio::test]
async fn a_cancel_says_what_it_met() {
    let stage = Stage::new();
    let archived = stage.put("default", "archived", State::Archived).await;
    let completed = stage.put("default", "completed", State::Completed).await;
    let active = stage.put("default", "active", State::Active).await;
    let pending = stage.put("low", "pending", State::Pending).await;
    let none = TaskKey::new(active.queue.clone(), "none".try_into().unwrap());
    let keys = vec![archived.clone(), active.clone(), none.clone(), pending.clone(), completed.clone()];
    let outcomes = stage.inspector.cancel_tasks(keys).await.unwrap();
    assert_eq!(
        outcomes,
        [
            (archived, Cancelled::Finished),
            (active, Cancelled::Signalled),
            (none, Cancelled::NotFound),
            (pending, Cancelled::Deleted),
            (completed, Cancelled::Finished),
        ]
    );
    assert!(Cancelled::Signalled.is_done() && !Cancelled::Finished.is_done());
    assert_eq!(serde_json::to_value(Cancelled::NotFound).unwrap(), "not_found");
}

#[tokio::test]
async fn a_task_that_is_nowhere_is_not_found_however_it_is_named() {
    let stage = Stage::new();
    let there = stage.put("default", "there", State::Pending).await;
    let none = TaskKey::new(there.queue.clone(), "none".try_into().unwrap());
    assert_eq!(stage.inspector.cancel_task("none").await, Ok(Cancelled::NotFound));
    assert_eq!(stage.inspector.cancel_task(("default", "none")).await, Ok(Cancelled::NotFound));
    assert_eq!(stage.inspector.cancel_task(&none).await, Ok(Cancelled::NotFound));
    // A name that cannot be right is another matter.
    assert!(matches!(stage.inspector.cancel_task(("defalt", "none")).await, Err(Error::UnknownQueue { .. })));
    assert!(matches!(stage.inspector.cancel_task("").await, Err(Error::Name(_))));
}

#[tokio::test]
async fn an_id_in_several_queues_is_not_cancelled_before_one_is_named() {
    let stage = Stage::new();
    let (one, other) =
        (stage.put("default", "a", State::Pending).await, stage.put("low", "a", State::Pending).await);
    let error = stage.inspector.cancel_task("a").await.unwrap_err();
    assert_eq!(error.to_string(), "task a is in several queues (default, low), say which one");
    assert_eq!(stage.state(&one).await, Some(State::Pending));
    assert_eq!(stage.inspector.cancel_task(("low", "a")).await, Ok(Cancelled::Deleted));
    assert_eq!((stage.state(&other).await, stage.state(&one).await), (None, Some(State::Pending)));
}

#[tokio::test]
async fn cancelling_twice_changes_nothing() {
    let stage = Stage::new();
    let key = stage.put("default", "a", State::Active).await;
    for _ in 0..2 {
        assert_eq!(stage.inspector.cancel_task(&key).await.unwrap(), Cancelled::Signalled);
    }
    let key = stage.put("low", "b", State::Pending).await;
    assert_eq!(stage.inspector.cancel_task(&key).await.unwrap(), Cancelled::Deleted);
    assert_eq!(stage.inspector.cancel_task(&key).await.unwrap(), Cancelled::NotFound);
}

#[tokio::test]
async fn a_whole_state_is_changed_in_steps() {
    let stage = Stage::new();
    for n in 0..1_201 {
        stage.put("default", &format!("t{n}"), State::Pending).await;
    }
    assert_eq!(stage.inspector.archive_all("default", State::Pending, "flood").await.unwrap(), 1_201);
    assert_eq!(stage.inspector.run_all("default", State::Archived).await.unwrap(), 1_201);
    assert_eq!(stage.inspector.delete_all("default", State::Pending).await.unwrap(), 1_201);
    assert_eq!(stage.inspector.queue("default").await.unwrap().size, 0);
    assert_eq!(stage.inspector.run_all("default", State::Pending).await.unwrap(), 0);
}

#[tokio::test]
async fn a_paused_queue_is_not_claimed_from() {
    let stage = Stage::new();
    stage.put("low", "a", State::Pending).await;
    assert!(stage.inspector.pause("maintenance", "upgrade").await.unwrap());
    assert!(!stage.inspector.pause("low", "longer upgrade").await.unwrap());
    assert!(stage.try_claim("low").await.is_none());
    let queue = stage.inspector.queue("maintenance").await.unwrap();
    assert_eq!(queue.paused_reason.as_deref(), Some("longer upgrade"));
    assert!(stage.inspector.resume("maintenance").await.unwrap());
    assert!(!stage.inspector.resume("maintenance").await.unwrap());
    assert!(stage.try_claim("low").await.is_some());
}

#[tokio::test]
async fn a_queue_of_the_file_can_be_paused_before_its_first_task() {
    let stage = Stage::new();
    assert!(stage.inspector.pause("default", "not yet").await.unwrap());
    let error = stage.inspector.pause("nowhere", "x").await.unwrap_err();
    assert_eq!(error.to_string(), "unknown queue `nowhere`");
}

#[tokio::test]
async fn a_waiting_task_gets_another_time_and_another_payload() {
    let stage = Stage::new();
    let key = stage.put("default", "a", State::Pending).await;
    let due = START + Duration::from_secs(600);
    stage.inspector.reschedule(&key, When::At(due)).await.unwrap();
    stage.inspector.update_payload(&key, "{}".into()).await.unwrap();
    let task = stage.inspector.raw(&key).await.unwrap();
    assert_eq!((task.state, task.due, &task.payload[..]), (State::Scheduled, Some(due), &b"{}"[..]));
    let running = stage.put("low", "b", State::Active).await;
    let error = stage.inspector.reschedule(&running, When::Now).await.unwrap_err();
    assert!(matches!(error, Error::Store(StoreError::WrongState { .. })));
}

#[tokio::test]
async fn only_an_empty_queue_is_removed_without_force() {
    let stage = Stage::new();
    stage.put("elsewhere", "a", State::Archived).await;
    let error = stage.inspector.remove_queue("elsewhere", false).await.unwrap_err();
    assert!(matches!(error, Error::Store(StoreError::NotEmpty { tasks: 1, .. })));
    assert_eq!(stage.inspector.remove_queue("elsewhere", true).await.unwrap(), 1);
    assert!(matches!(stage.inspector.queue("elsewhere").await, Err(Error::UnknownQueue { .. })));
}
