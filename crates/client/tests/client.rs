//! What reaches the store, and what comes back.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use poolwright_broker::{Broker, ClaimId, ClaimRequest, Demand, Enqueued, Held, How, WeightedQueue};
use poolwright_client::{Client, Error, Inject, Witness};
use poolwright_core::clock::ManualClock;
use poolwright_core::{
    BoxError, Chance, Headers, NewTask, Settlement, State, TaskKey, TaskRecord, Timestamp,
};
use poolwright_handler::{Context, FromCall, Payload, TaskCall, TaskType, service, testing};
use poolwright_registry::Topology;
use poolwright_store_memory::MemoryStore;
use serde::{Deserialize, Serialize};
use tower::ServiceExt;

#[derive(Debug, Serialize, Deserialize)]
struct Send {
    to: String,
}
impl TaskType for Send {
    const NAME: &'static str = "mail:send";
}

fn mail(to: &str) -> Send {
    Send { to: to.to_owned() }
}

fn client() -> (Client, Arc<dyn Broker>) {
    let clock = Arc::new(ManualClock::at(Timestamp::from_secs(1_900_000_000)));
    let broker: Arc<dyn Broker> = MemoryStore::new(clock, Chance::seeded(1));
    let topology = Topology::simple([("mail", 4)])
        .task("mail:send", "mail")
        .task_with("mail:once", "mail", "id = \"once\"")
        .task_with("mail:locked", "mail", "unique_for = \"1h\"")
        .build()
        .unwrap();
    (Client::new(broker.clone(), topology).with_chance(Chance::seeded(2)), broker)
}

async fn stored(broker: &Arc<dyn Broker>, key: &TaskKey) -> TaskRecord {
    broker.get(key.clone()).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_typed_task_reaches_its_queue() {
    let (client, broker) = client();
    let enqueued = client.enqueue(&mail("ada")).await.unwrap();
    assert_eq!((enqueued.state, enqueued.how), (State::Pending, How::Stored));
    let task = stored(&broker, &enqueued.key).await;
    assert_eq!((task.key.queue.as_str(), task.task_type.as_str()), ("mail", "mail:send"));
    assert_eq!(task.payload, r#"{"to":"ada"}"#);
}

#[tokio::test]
async fn a_raw_task_reaches_its_queue_with_what_was_said() {
    let (client, broker) = client();
    let at = Timestamp::from_secs(1_900_000_600);
    let request = client.raw("mail:send", &b"\xff\x00"[..]).at(at).header("origin", "import").max_retry(1);
    let enqueued = request.send().await.unwrap();
    assert_eq!(enqueued.state, State::Scheduled);
    let task = stored(&broker, &enqueued.key).await;
    assert_eq!((task.due, task.max_retry, &task.payload[..]), (Some(at), 1, &b"\xff\x00"[..]));
    assert_eq!(task.headers["origin"], "import");
}

#[tokio::test]
async fn an_equal_task_is_refused_while_the_first_one_waits() {
    let (client, _) = client();
    let send = |to: &str| {
        let (client, task) = (client.clone(), mail(to));
        async move { client.task(&task).unique_for(Duration::from_secs(60)).send().await }
    };
    let first = send("ada").await.unwrap();
    let error = send("ada").await.unwrap_err();
    assert!(error.is_duplicate());
    assert_eq!(error.existing(), Some(&first.key));
    assert!(send("bob").await.is_ok());
}

#[tokio::test]
async fn a_batch_has_one_outcome_each_and_in_order() {
    let (client, broker) = client();
    let mut batch = client.batch();
    batch.push(client.task(&mail("a")).id("a"));
    batch.push(client.raw("mail:sned", ""));
    batch.push(client.task(&mail("b")).id(""));
    batch.push(client.raw("mail:once", ""));
    batch.push(client.raw("mail:once", ""));
    batch.push(client.task(&mail("c")).id("c"));
    assert_eq!((batch.len(), batch.is_empty()), (6, false));
    let outcomes = batch.send().await;
    let ids: Vec<Option<&str>> =
        outcomes.iter().map(|outcome| outcome.as_ref().ok().map(|done| done.key.id.as_str())).collect();
    assert_eq!(ids, [Some("a"), None, None, Some("once"), None, Some("c")]);
    assert!(matches!(outcomes[1], Err(Error::UnknownType { .. })));
    assert!(matches!(outcomes[2], Err(Error::Name(_))));
    assert!(outcomes[4].as_ref().unwrap_err().is_duplicate());
    let stats = broker.queue_stats(broker.queues().await.unwrap()).await.unwrap();
    assert_eq!(stats[0].pending, 3);
}

#[tokio::test]
async fn many_tasks_of_one_type_go_together() {
    let (client, broker) = client();
    let tasks: Vec<Send> = (0..10).map(|n| mail(&n.to_string())).collect();
    let outcomes = client.enqueue_all(&tasks).await;
    for (task, outcome) in tasks.iter().zip(outcomes) {
        let record = stored(&broker, &outcome.unwrap().key).await;
        assert_eq!(record.payload, task.to_bytes().unwrap());
    }
    assert!(client.enqueue_all::<Send>([]).await.is_empty());
}

#[tokio::test]
async fn a_store_that_refuses_as_a_whole_refuses_each_task_that_was_sent() {
    let (client, broker) = client();
    broker.close().await.unwrap();
    let mut batch = client.batch();
    batch.push(client.raw("mail:send", ""));
    batch.push(client.raw("mail:sned", ""));
    let outcomes = batch.send().await;
    assert!(matches!(outcomes[0], Err(Error::Store(_))));
    assert!(matches!(outcomes[1], Err(Error::UnknownType { .. })));
}

/// Polls once what a store in memory answers at once.
fn at_once<T>(answer: impl Future<Output = T>) -> T {
    match std::pin::pin!(answer).poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(answer) => answer,
        std::task::Poll::Pending => panic!("a store in memory does not wait"),
    }
}

#[tokio::test]
async fn a_long_batch_goes_in_parts_and_ends_when_the_store_does() {
    let (client, broker) = client();
    let tasks: Vec<Send> = (0..2_500).map(|n| mail(&n.to_string())).collect();
    let took = Arc::new(AtomicUsize::new(0));
    let seen = took.clone();
    let client = client.with_witness(Arc::new(move |_: &NewTask, _: &Enqueued| {
        // Between two parts: others have their turn here, and one of them closes the store after the second.
        if seen.fetch_add(1, Ordering::SeqCst) == 1_000 {
            at_once(broker.close()).unwrap();
        }
    }));
    let outcomes = client.enqueue_all(&tasks).await;
    assert_eq!((outcomes.len(), took.load(Ordering::SeqCst)), (2_500, 2_000));
    assert!(outcomes[..2_000].iter().all(Result::is_ok));
    assert!(outcomes[2_000..].iter().all(|outcome| matches!(outcome, Err(Error::Store(_)))));
}

#[tokio::test]
async fn large_payloads_make_short_parts() {
    let (client, broker) = client();
    let client = client.with_witness(Arc::new(move |_: &NewTask, _: &Enqueued| {
        at_once(broker.close()).unwrap();
    }));
    let mut batch = client.batch();
    batch.extend((0..6).map(|_| client.raw("mail:send", vec![b'x'; 1 << 20])));
    let outcomes = batch.send().await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 4);
}

#[tokio::test]
async fn a_payload_that_does_not_encode_is_refused() {
    struct Broken;
    impl Payload for Broken {
        const NAMES: &'static [&'static str] = &["mail:send"];
        fn name(&self) -> &'static str {
            "mail:send"
        }
        fn to_bytes(&self) -> Result<bytes::Bytes, BoxError> {
            Err("out of ink".into())
        }
        fn from_bytes(_: &str, _: &bytes::Bytes) -> Result<Self, BoxError> {
            Ok(Self)
        }
    }
    let (client, _) = client();
    let error = client.enqueue(&Broken).await.unwrap_err();
    assert_eq!(error.to_string(), "the payload of `mail:send` does not encode: out of ink");
}

#[tokio::test]
async fn headers_are_injected_once_for_each_task_and_the_callers_win() {
    let (client, broker) = client();
    let calls = Arc::new(AtomicUsize::new(0));
    let inject: Inject = {
        let calls = calls.clone();
        Arc::new(move |headers: &mut Headers| {
            let n = calls.fetch_add(1, Ordering::SeqCst);
            headers.insert("traceparent".into(), format!("trace {n}"));
            headers.insert("origin".into(), "injected".into());
        })
    };
    let client = client.with_inject(inject);
    let mut batch = client.batch();
    batch.push(client.task(&mail("a")).header("origin", "mine"));
    batch.push(client.raw("mail:sned", ""));
    batch.push(client.task(&mail("b")));
    let outcomes = batch.send().await;
    let first = stored(&broker, &outcomes[0].as_ref().unwrap().key).await.headers;
    assert_eq!((first["traceparent"].as_str(), first["origin"].as_str()), ("trace 0", "mine"));
    let second = stored(&broker, &outcomes[2].as_ref().unwrap().key).await.headers;
    assert_eq!((second["traceparent"].as_str(), second["origin"].as_str()), ("trace 1", "injected"));
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_witness_is_told_of_what_the_store_took_and_of_nothing_else() {
    let (client, _) = client();
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let witness: Witness = {
        let seen = seen.clone();
        Arc::new(move |task: &NewTask, done: &Enqueued| {
            assert_eq!(task.key, done.key);
            seen.lock().unwrap().push(task.key.id.to_string());
        })
    };
    let client = client.with_witness(witness);
    client.task(&mail("a")).id("a").send().await.unwrap();
    client.task(&mail("a")).id("a").send().await.unwrap_err();
    client.raw("mail:sned", "").id("b").send().await.unwrap_err();
    client.raw("mail:once", "").send().await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["a", "once"]);
}

#[tokio::test]
async fn a_task_whose_reply_was_lost_is_sent_again_under_its_own_id_and_stored_once() {
    let (client, broker) = client();
    let ada = mail("ada");
    let request = || client.task(&ada).id("mail-7").retention(Duration::from_secs(3_600));
    // The store has it, and whoever sent it heard nothing.
    let lost = request().build().unwrap();
    let key = lost.key.clone();
    broker.enqueue(vec![lost]).await.unwrap().remove(0).unwrap();
    let error = request().send().await.unwrap_err();
    assert!(error.is_duplicate() && !error.is_retryable());
    assert!(error.existing().is_some_and(|key| key.id == "mail-7"), "an earlier send was heard: {error}");

    // Also when it has run to its end meanwhile.
    let queues = vec![WeightedQueue { queue: key.queue.clone(), weight: 1 }];
    let demand = Demand { pool: "mail".to_owned().try_into().unwrap(), slots: 1, queues, seed: 1 };
    let lease = Duration::from_secs(10);
    let claim = ClaimRequest { id: ClaimId(1), resent: false, lease, demands: vec![demand] };
    let task = broker.claim(claim).await.unwrap().claims.remove(0).task;
    let done = Settlement::Complete { retain_for: task.retention, result: None };
    broker.settle(vec![(Held::of(&task).unwrap(), done)]).await.unwrap().remove(0).unwrap();
    let error = request().send().await.unwrap_err();
    assert_eq!(error.existing(), Some(&key));
    let stats = broker.queue_stats(vec![key.queue.clone()]).await.unwrap();
    assert_eq!((stats[0].count(State::Pending), stats[0].count(State::Completed)), (0, 1));
}

#[tokio::test]
async fn a_lock_of_no_length_takes_none_and_asks_for_none() {
    let (client, _) = client();
    let hour = Duration::from_secs(3_600);
    let (locked, ada) = (client.raw("mail:locked", "1"), mail("ada"));
    locked.clone().send().await.unwrap();
    assert!(locked.clone().send().await.unwrap_err().is_duplicate());
    locked.clone().unique_for(Duration::ZERO).send().await.unwrap();
    // What went without a lock stands in the way of none.
    client.task(&ada).unique_for(Duration::ZERO).send().await.unwrap();
    client.task(&ada).unique_for(hour).send().await.unwrap();
}

#[tokio::test]
async fn a_handler_takes_the_client_and_enqueues() {
    async fn forward(task: Send, client: Client) -> Result<(), BoxError> {
        client.task(&task).id("forwarded").send().await?;
        Ok(())
    }
    let (client, broker) = client();
    let cx = Context::builder(testing::task(&mail("ada")).unwrap()).state(client).build();
    service(forward).oneshot(TaskCall::new(cx)).await.unwrap();
    let queue = broker.queues().await.unwrap().remove(0);
    let key = TaskKey::new(queue, "forwarded".try_into().unwrap());
    assert_eq!(stored(&broker, &key).await.payload, r#"{"to":"ada"}"#);
}

#[tokio::test]
async fn a_missing_client_is_said() {
    assert!(Client::need().is_some());
    let cx = Context::builder(testing::task(&mail("ada")).unwrap()).build();
    assert_eq!(Client::from_call(&cx).unwrap_err().to_string(), "no client was given to the worker");
}

#[tokio::test]
async fn a_request_can_be_looked_at_without_sending_it() {
    let (client, broker) = client();
    let task = client.task(&mail("ada")).id("a").build().unwrap();
    assert_eq!(task.key.id, "a");
    assert!(broker.queues().await.unwrap().is_empty());
}
