//! The demo beside others on one store: a process that died, other work, operators.

use std::path::Path;
use std::time::Duration;

use poolwright::broker::{ClaimId, ClaimRequest, Demand, WeightedQueue};
use poolwright::core::{PoolName, QueueName};
use poolwright::ledger::{Filter, ListRequest};
use poolwright::prelude::*;
use poolwright::{Stores, Topology};
use poolwright_demo::id::SourceId;
use poolwright_demo::payload::DatasourceSync;
use poolwright_demo::{RunOptions, Summary, handled_types};

use crate::place::Place;

const PRESET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../queues.toml");

/// Another program on the store of a place.
struct Other {
    stores: Stores,
    client: Client,
    inspector: TaskInspector,
}

impl Other {
    async fn of(place: &Place) -> Self {
        let stores = Stores::open(&place.options().broker, None).await.unwrap();
        let (topology, _) = Topology::load(PRESET).unwrap();
        let client = Client::new(stores.broker.clone(), topology.clone());
        let inspector = TaskInspector::new(stores.broker.clone(), topology);
        Self { stores, client, inspector }
    }

    /// How many letters there are, and how many of them wait for a replay.
    async fn letters(&self) -> (u64, u64) {
        let count = |unreplayed| self.stores.ledger.count(Filter { unreplayed, ..Filter::default() });
        (count(false).await.unwrap(), count(true).await.unwrap())
    }

    async fn leave(self) {
        self.stores.broker.close().await.unwrap();
    }
}

fn outcome(summary: &Summary) -> [u64; 5] {
    let Summary { documents, chunks, questions, wiki_pages, dead_letters, .. } = *summary;
    [documents, chunks, questions, wiki_pages, dead_letters]
}

#[tokio::test]
async fn what_a_dead_process_had_in_hand_is_taken_over() {
    let (place, calm) = (Place::with_sample(), Place::with_sample());
    let source = SourceId::from(place.files().canonicalize().unwrap().to_str().unwrap().to_owned());
    let sync = DatasourceSync::of(&source);
    let dead = Other::of(&place).await;
    dead.client.task(&sync).id(sync.id()).send().await.unwrap();
    let demand = Demand {
        pool: PoolName::new("maintenance").unwrap(),
        slots: 1,
        queues: vec![WeightedQueue { queue: QueueName::new("sync").unwrap(), weight: 1 }],
        seed: 1,
    };
    let lease = Duration::from_millis(1);
    let claim = ClaimRequest { id: ClaimId(1), resent: false, lease, demands: vec![demand] };
    assert_eq!(dead.stores.broker.claim(claim).await.unwrap().claims.len(), 1);
    dead.leave().await;
    assert_eq!(outcome(&place.run().await), outcome(&calm.run().await));
}

#[tokio::test]
async fn work_of_others_is_left_alone_and_does_not_hold_the_run_up() {
    let place = Place::with_sample();
    let other = Other::of(&place).await;
    other.client.raw("kb:clone", r#"{"task_id":"t1","source_id":"a","target_id":"b"}"#).send().await.unwrap();
    other.client.raw("memory:extract", "{}").send().await.unwrap();
    let summary = place.run().await;
    assert_eq!((summary.documents, summary.unfinished, summary.other_tasks), (9, 0, 2));
    let queues = other.inspector.queues().await.unwrap();
    assert_eq!(queues.iter().map(|queue| queue.pending + queue.scheduled + queue.retry).sum::<u64>(), 2);
    other.leave().await;
}

#[tokio::test]
async fn letters_wait_for_a_replay_until_their_file_begins_anew() {
    let place = Place::with_sample();
    place.run().await;
    let other = Other::of(&place).await;
    assert_eq!(other.letters().await, (2, 2));
    place.run().await;
    assert_eq!(other.letters().await, (2, 2), "a run over the same files adds none");
    place.run_with(RunOptions { retry_failed: true, ..place.options() }).await;
    assert_eq!(other.letters().await, (4, 2), "each file has one that waits, of its latest life");
    place.put("broken/cut-off.json", r#"{"boat": "Heron", "yard": "North"}"#);
    place.run().await;
    assert_eq!(other.letters().await, (4, 1));
    other.leave().await;
}

#[tokio::test]
async fn a_letter_that_an_operator_replays_is_worked_on_in_the_next_run_and_counted_once() {
    let place = Place::new();
    place.put("cut.json", r#"{"boat": "#);
    assert_eq!(place.run().await.dead_letters, 1);
    let other = Other::of(&place).await;
    let letters = other.inspector.dead_letters(other.stores.ledger.clone());
    let listed = letters.list(ListRequest::default()).await.unwrap().letters;
    letters.replay(listed[0].id).await.unwrap();
    let summary = place.run().await;
    assert_eq!((summary.dead_letters, summary.new, summary.unfinished), (1, 0, 0));
    assert!(summary.tasks >= 3, "sync, replay, wiki: {}", summary.tasks);
    assert_eq!(other.letters().await, (2, 1));
    other.leave().await;
}

#[tokio::test]
async fn a_paused_queue_holds_the_run_until_somebody_resumes_it() {
    let place = Place::with_sample();
    let other = Other::of(&place).await;
    other.inspector.pause("summary", "the model is away").await.unwrap();
    let mut news = other.stores.broker.watch(vec![QueueName::new("summary").unwrap()]);
    let options = place.options();
    let run = tokio::spawn(async move { Box::pin(poolwright_demo::run(options)).await });
    while other.inspector.queue("summary").await.unwrap().pending < 9 {
        news.changed().await;
    }
    assert!(!run.is_finished());
    other.inspector.resume("summary").await.unwrap();
    let summary = run.await.unwrap().unwrap();
    assert_eq!((summary.summaries, summary.unfinished), (9, 0));
    other.leave().await;
}

#[tokio::test]
async fn a_file_of_queues_of_the_users_is_taken_as_it_is() {
    let place = Place::with_sample();
    let config = Some(Path::new(PRESET).to_owned());
    let summary = place.run_with(RunOptions { config, ..place.options() }).await;
    assert_eq!((summary.documents, summary.dead_letters, summary.unfinished), (9, 2, 0));

    let own = place.home().join("own.toml");
    let text = "version = 1\n[pools.one]\nworkers = 1\nqueues = { all = 1 }\n[tasks.mine]\nqueue = \"all\"\n";
    std::fs::write(&own, text).unwrap();
    let refused = RunOptions { config: Some(own), ..place.options() };
    let error = Box::pin(poolwright_demo::run(refused)).await.unwrap_err().to_string();
    for task_type in handled_types() {
        assert!(error.contains(task_type), "{task_type} is missing in {error}");
    }
}
