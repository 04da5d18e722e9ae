//! The test kit, as users use it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use poolwright::core::{Class, OnConflict, State as TaskState};
use poolwright::prelude::*;
use poolwright::testing::{self, START, TestQueue};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TaskType)]
#[task("page:fetch")]
struct Fetch {
    url: String,
    depth: u32,
}

fn page(url: &str, depth: u32) -> Fetch {
    Fetch { url: url.to_owned(), depth }
}

type Tries = Arc<AtomicU32>;

/// Follows links to the wanted depth; other pages say what happens to them.
async fn fetch(
    task: Fetch,
    cx: Context,
    client: Client,
    State(tries): State<Tries>,
) -> Result<String, BoxError> {
    tries.fetch_add(1, Ordering::SeqCst);
    match task.url.as_str() {
        "flaky" if cx.retried() < 2 => Err("try again".into()),
        "gone" => Err(TaskError::permanent("404").into()),
        "busy" => Err(TaskError::rate_limited(Duration::from_secs(30), "slow down").into()),
        "unwanted" => Err(TaskError::revoked("nobody wants it").into()),
        "locked" => Err(TaskError::needs_operator("the key expired").into()),
        "panics" => panic!("oh no"),
        "hangs" => std::future::pending().await,
        url => {
            if task.depth > 0 {
                client.task(&page(url, task.depth - 1)).send().await?;
            }
            cx.progress(1.0, "read").await;
            Ok(format!("read {url}"))
        }
    }
}

async fn queue() -> (TestQueue, Tries) {
    let topology = Topology::builder()
        .pool("net", 4, [("pages", 1), ("slow", 1)])
        .lines("[retry.soon]\nkind = \"fixed\"\ndelay = \"10s\"")
        .task_with("page:fetch", "pages", "max_retry = 2\nretry = \"soon\"")
        .task_with("page:index", "slow", "id = \"index\"\non_conflict = \"run_again\"")
        .build()
        .unwrap();
    let tries = Tries::default();
    let app = Orchestrator::new(topology).state(tries.clone()).handle(fetch);
    (TestQueue::new(app).await.unwrap(), tries)
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_hangs_takes_no_time_where_time_is_paused() {
    let (queue, _) = queue().await;
    queue
        .client()
        .task(&page("hangs", 0))
        .max_retry(0)
        .timeout(Duration::from_secs(90))
        .send()
        .await
        .unwrap();
    assert_eq!(queue.drain().await.archived, 1);
    let letters = queue.dead_letters().await;
    let error = "its timeout of 90s was over, and it did not return within 5s";
    assert_eq!((letters[0].class, &*letters[0].error), (Class::TimedOut, error));
    assert_eq!(queue.now(), START, "the queue's own clock stands still");
}

#[tokio::test]
async fn nothing_runs_before_the_drain_and_all_of_it_during_it() {
    let (queue, tries) = queue().await;
    queue.client().enqueue(&page("a", 3)).await.unwrap();
    assert_eq!((queue.enqueued::<Fetch>(), tries.load(Ordering::SeqCst)), (vec![page("a", 3)], 0));
    let drained = queue.drain().await;
    drained.assert_clean();
    assert_eq!((drained.succeeded, drained.attempts()), (4, 4));
    assert_eq!(queue.enqueued::<Fetch>(), (0..=3).rev().map(|depth| page("a", depth)).collect::<Vec<_>>());
    assert_eq!(queue.inspector().queue("pages").await.unwrap().size, 0);
}

#[tokio::test]
async fn a_delayed_task_waits_until_the_clock_is_moved() {
    let (queue, _) = queue().await;
    queue.client().task(&page("a", 0)).delay(Duration::from_secs(90)).send().await.unwrap();
    assert_eq!(queue.drain().await.attempts(), 0);
    queue.advance(Duration::from_secs(89)).await;
    assert_eq!(queue.drain().await.attempts(), 0);
    queue.advance(Duration::from_secs(1)).await;
    assert_eq!(queue.drain().await.succeeded, 1);
    assert_eq!(queue.now(), START + Duration::from_secs(90));
}

#[tokio::test]
async fn a_retry_waits_by_the_types_policy_and_may_succeed() {
    let (queue, tries) = queue().await;
    let enqueued = queue.client().enqueue(&page("flaky", 0)).await.unwrap();
    let drained = queue.drain().await;
    assert_eq!((drained.retried, drained.errors.len()), (1, 1));
    assert!(drained.errors[0].ends_with("(page:fetch): transient: try again"), "{:?}", drained.errors);
    let task = queue.inspector().task(&enqueued.key).await.unwrap();
    assert_eq!((task.state, task.next_process_at), (TaskState::Retry, Some(START + Duration::from_secs(10))));
    let rest = queue.exhaust().await;
    assert_eq!((rest.retried, rest.succeeded, tries.load(Ordering::SeqCst)), (1, 1, 3));
    assert_eq!(queue.now(), START + Duration::from_secs(20));
}

#[tokio::test]
async fn every_end_is_counted_and_a_final_one_leaves_a_letter() {
    let (queue, _) = queue().await;
    let client = queue.client();
    for url in ["gone", "busy", "unwanted", "fine"] {
        client.enqueue(&page(url, 0)).await.unwrap();
    }
    client.raw("page:fetch", "no json").send().await.unwrap();
    let drained = queue.drain().await;
    let counts = (drained.succeeded, drained.retried, drained.archived, drained.discarded, drained.held);
    assert_eq!(counts, (1, 1, 2, 1, 0));
    let letters = queue.dead_letters().await;
    let classes: Vec<Class> = letters.iter().map(|letter| letter.class).collect();
    assert_eq!(classes, [Class::Permanent, Class::Undecodable]);
    assert_eq!(&*letters[0].error, "404");
}

#[tokio::test]
async fn a_panic_of_a_handler_is_a_failure_like_any_other() {
    let (queue, _) = queue().await;
    queue.client().enqueue(&page("panics", 0)).await.unwrap();
    let drained = queue.exhaust().await;
    assert_eq!((drained.retried, drained.archived), (2, 1));
    assert_eq!(queue.dead_letters().await[0].class, Class::Panicked);
    let said = std::panic::catch_unwind(|| drained.assert_clean()).unwrap_err();
    let said = said.downcast_ref::<String>().unwrap();
    assert!(said.starts_with("3 of 3 attempts did not succeed:") && said.contains("oh no"), "{said}");
}

#[tokio::test]
async fn a_held_queue_stays_until_it_is_resumed() {
    let (queue, tries) = queue().await;
    queue.client().enqueue(&page("locked", 0)).await.unwrap();
    assert_eq!(queue.drain().await.held, 1);
    assert_eq!(queue.drain().await.attempts(), 0);
    let inspector = queue.inspector();
    assert_eq!(inspector.queue("pages").await.unwrap().paused_reason.as_deref(), Some("the key expired"));
    inspector.resume("pages").await.unwrap();
    assert_eq!((queue.drain().await.held, tries.load(Ordering::SeqCst)), (1, 2));
}

#[tokio::test]
async fn options_of_what_was_enqueued_can_be_asserted() {
    let (queue, _) = queue().await;
    let request = queue.client().raw("page:index", "{}").header("by", "test").send().await.unwrap();
    let met = queue.client().raw("page:index", "{}").send().await.unwrap();
    assert_eq!(request.key, met.key);
    let tasks = queue.enqueued_tasks();
    assert_eq!(tasks.len(), 1, "one that met a waiting task is not listed");
    assert_eq!((tasks[0].headers["by"].as_str(), tasks[0].on_conflict), ("test", OnConflict::RunAgain));
}

#[tokio::test]
async fn a_letter_is_replayed_in_a_test_as_an_operator_would() {
    let (queue, _) = queue().await;
    queue.client().enqueue(&page("gone", 0)).await.unwrap();
    queue.drain().await;
    let report = queue.letters().replay_all(Default::default()).await.unwrap();
    assert_eq!((report.replayed, report.refused.len()), (1, 0));
    assert_eq!(queue.drain().await.archived, 1);
    assert_eq!(queue.dead_letters().await.len(), 2);
}

#[tokio::test]
async fn two_runs_of_one_test_are_alike() {
    let ids = async || {
        let (queue, _) = queue().await;
        queue.client().enqueue(&page("a", 2)).await.unwrap();
        queue.drain().await;
        queue.enqueued_tasks().into_iter().map(|task| task.key).collect::<Vec<_>>()
    };
    assert_eq!(ids().await, ids().await);
}

#[tokio::test]
async fn what_is_wrong_with_the_orchestrator_is_told_as_at_a_start() {
    let topology = Topology::simple([("pages", 1)]).task("page:fetch", "pages").build().unwrap();
    let error = TestQueue::new(Orchestrator::new(topology).handle(fetch)).await.unwrap_err();
    assert!(error.to_string().contains("no state of that type was set"), "{error}");
}

#[tokio::test]
async fn a_handler_is_run_inline_with_a_context_made_by_hand() {
    async fn greet(task: Fetch, cx: Context, State(word): State<String>) -> Result<String, BoxError> {
        cx.progress(0.5, "thinking").await;
        Ok(format!("{word} {}", task.url))
    }
    let heard = testing::Recorder::default();
    let task = testing::task(&page("ada", 0)).unwrap();
    let cx = Context::builder(task).state("hello".to_owned()).report(heard.clone()).build();
    let output = testing::run_in(greet, cx).await.unwrap();
    assert_eq!(output.result.as_deref(), Some(&b"\"hello ada\""[..]));
    assert_eq!(heard.progress(), [(0.5, "thinking".to_owned())]);
}

#[tokio::test]
async fn a_handler_run_inline_gives_its_own_error() {
    async fn fails(_: Fetch) -> Result<(), BoxError> {
        Err(TaskError::permanent("no").into())
    }
    let error = testing::run(fails, &page("a", 0)).await.unwrap_err();
    assert_eq!(poolwright::core::Next::of(&*error).class, Class::Permanent);
}
