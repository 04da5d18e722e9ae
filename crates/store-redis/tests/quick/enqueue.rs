//! Ids that are taken, odd ids and names, what goes together and what does not.

use futures_util::future::join_all;
use poolwright_broker::{Error, Find, How, Inspect, Submit};
use poolwright_conformance::Harness;
use poolwright_conformance::builders::{key, queue, task, tasks};
use poolwright_core::{NewTask, State, Subject};

use crate::scene::{Scene, ids, names, tasks_of};

/// Ids of every kind that a caller may make up.
fn odd_ids() -> Vec<String> {
    let mut ids: Vec<String> = [
        "7837f142-6337-4217-9276-8f27281b67d1",
        "7837F142-6337-4217-9276-8F27281B67D2",
        "7837f142-6337-4217-9276-8f27281b67dg",
        "7837f142-6337-4217-9276-8f27281b67d",
        "7837f14263374217-9276-8f27281b67d1-a",
        "{7837f142-6337-4217-9276-8f27281b67d1}",
        "00000000-0000-0000-0000-000000000000",
        "0a0d0000-0a0a-0000-0000-000000000a0a",
        "1",
        "+",
        "1i",
        "1+",
        "i",
        "-1",
        "a b",
        "a:b:c",
        "{q}",
        "%0A%d%s%",
        "größe-木",
        "t:1",
        "nil",
        "\u{a0}x",
    ]
    .map(str::to_owned)
    .into();
    ids.push("x".repeat(255));
    ids
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plain_tasks_are_stored_without_being_read() {
    let s = Scene::new().await;
    let names = names("a", 500);
    s.enqueue(tasks(&names)).await;
    s.enqueue(tasks(["single"])).await;
    assert_eq!((s.calls("hgetall").await, s.calls("lpush").await), (0, 2));
    let claimed = s.claim(501).await;
    assert_eq!(ids(&claimed)[..500], names);
    assert!(claimed.iter().all(|task| task.enqueued_at == s.harness.now()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_that_comes_twice_in_one_call_is_stored_once() {
    let s = Scene::new().await;
    for plain_before in [0, 3, 200] {
        let first = format!("twice{plain_before}");
        let mut batch = tasks(names(&format!("p{plain_before}-"), plain_before));
        batch.push(task(&first).payload("first").build());
        batch.push(task(&first).queue("other").payload("elsewhere").build());
        batch.push(task(&first).payload("second").build());
        batch.push(task(&first).payload("third").subject("doc", "1").build());
        batch.push(task(&first).payload("fourth").run_again().build());
        let outcomes = s.store.enqueue(batch).await.unwrap();
        let refused = Error::DuplicateId { key: key("q", &first), state: State::Pending };
        let told: Vec<_> = outcomes[plain_before..].iter().cloned().map(|one| one.map(|ok| ok.how)).collect();
        assert_eq!(
            told,
            [Ok(How::Stored), Ok(How::Stored), Err(refused.clone()), Err(refused), Ok(How::Coalesced)]
        );
        assert!(outcomes[..plain_before].iter().all(Result::is_ok));
        assert_eq!(s.get(&first).await.unwrap().payload, "first");
    }
    let found = s.other.find(Find::Subject(Subject::new("doc", "1")), 9).await.unwrap();
    assert!(found.tasks.is_empty(), "a refused task is in no index");
    assert_eq!((s.stats().await.pending, s.claim(999).await.len()), (206, 206));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_that_is_taken_refuses_itself_alone() {
    let s = Scene::new().await;
    let ids_of = names("a", 40);
    for (state, at) in [(State::Pending, 0), (State::Active, 17), (State::Scheduled, 39)] {
        let taken = format!("{state}");
        let first = task(&taken).payload("first");
        s.enqueue(vec![if state == State::Scheduled { first.after(60).build() } else { first.build() }])
            .await;
        if state == State::Active {
            s.claim(99).await;
        }
        let mut batch: Vec<NewTask> =
            ids_of.iter().map(|id| task(&format!("{state}-{id}")).build()).collect();
        batch.insert(at, task(&taken).payload("second").build());
        let outcomes = s.store.enqueue(batch).await.unwrap();
        let refused: Vec<_> = outcomes.iter().filter_map(|one| one.as_ref().err()).collect();
        assert_eq!(refused, [&Error::DuplicateId { key: key("q", &taken), state }]);
        assert!(outcomes[at].is_err());
        assert_eq!(s.get(&taken).await.unwrap().payload, "first");
    }
    let wanted = ids_of.iter().map(|id| format!("pending-{id}")).count();
    assert_eq!(s.stats().await.pending, 2 * 40);
    assert_eq!(s.stats().await.active, 2 + u64::try_from(wanted).unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_ghost_blocks_is_stored_with_all_others() {
    let s = Scene::new().await;
    s.set("b", "result", b"late").await;
    s.enqueue(tasks(["a", "b", "c"])).await;
    s.set("single", "result", b"late").await;
    s.enqueue(tasks(["single"])).await;
    let claimed = s.claim(9).await;
    assert_eq!(ids(&claimed), ["a", "b", "c", "single"]);
    assert!(claimed.iter().all(|task| task.result.is_none()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plain_and_other_tasks_of_one_call_keep_their_order() {
    let s = Scene::new().await;
    let batch = vec![
        task("a").build(),
        task("b").subject("doc", "1").scope("base", "2").build(),
        task("later").after(60).build(),
        task("c").unique("lock", 60).build(),
        task("refused").unique("lock", 60).build(),
        task("d").build(),
        task("e").queue("other").build(),
        task("f").build(),
    ];
    let outcomes = s.store.enqueue(batch).await.unwrap();
    let stored: Vec<_> = outcomes.iter().map(Result::is_ok).collect();
    assert_eq!(stored, [true, true, true, true, false, true, true, true]);
    assert_eq!(ids(&s.claim(9).await), ["a", "b", "c", "d", "f"]);
    assert_eq!(ids(&tasks_of(s.claim_from(9, &["other"]).await)), ["e"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ids_of_every_kind_are_stored_found_claimed_and_ended() {
    let s = Scene::new().await;
    let batch = odd_ids();
    for subject in [None, Some("木/1\n2")] {
        let build = |id: &String| match subject {
            Some(subject) => task(id).subject("a/b", subject).scope("", id).build(),
            None => task(id).build(),
        };
        s.enqueue(batch.iter().map(build).collect()).await;
        let found = s.other.find(Find::Subject(Subject::new("a/b", "木/1\n2")), 99).await.unwrap();
        assert_eq!(found.tasks.len(), if subject.is_some() { batch.len() } else { 0 });
        let claimed = s.claim(99).await;
        assert_eq!(ids(&claimed), batch);
        s.end(&claimed).await;
    }
    // And each alone.
    for id in &batch {
        s.enqueue(vec![task(id).build()]).await;
        s.enqueue(vec![task(id).queue("indexed").subject("doc", id).build()]).await;
        let claimed = tasks_of(s.claim_from(2, &["q", "indexed"]).await);
        assert_eq!(ids(&claimed), [id, id]);
        s.end(&claimed).await;
    }
    let of_tasks =
        |key: &String| ["t:", "subject:", "scope:", "lease", "active"].iter().any(|part| key.contains(part));
    let left: Vec<_> = s.keys().await.into_iter().filter(of_tasks).collect();
    assert_eq!(left, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queues_of_every_name_are_registered_and_served() {
    let s = Scene::new().await;
    let mut of = ["{x", "x{", ":", "a:b", "1", "größe", "a b", "%d", "t:", "asynq:q"];
    let batch: Vec<_> = of.iter().flat_map(|name| [task("a").queue(name), task("b").queue(name)]).collect();
    s.enqueue(batch.into_iter().map(Into::into).collect()).await;
    for name in of {
        s.enqueue(vec![task("c").queue(name).build()]).await;
        assert_eq!(ids(&tasks_of(s.claim_from(9, &[name]).await)), ["a", "b", "c"], "{name}");
    }
    of.sort_unstable();
    let mut registered = s.other.queues().await.unwrap();
    registered.sort_unstable();
    assert_eq!(registered, of.map(queue));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_whose_tasks_travel_together_are_each_answered_for_their_own() {
    let s = Scene::new().await;
    // Each has tasks of its own, and one that all of them want.
    let mine = |caller: usize| {
        let mut batch = tasks(names(&format!("c{caller}-"), caller % 4));
        batch.push(task("wanted").payload(format!("{caller}")).build());
        batch.push(task(&format!("s{caller}")).subject("doc", "1").build());
        batch
    };
    let outcomes = join_all((0..60).map(|caller| s.store.enqueue(mine(caller)))).await;
    let mut winners = 0;
    for (caller, outcomes) in outcomes.into_iter().enumerate() {
        let outcomes = outcomes.unwrap();
        let batch = mine(caller);
        assert_eq!(outcomes.len(), batch.len());
        for (outcome, task) in outcomes.into_iter().zip(batch) {
            match outcome {
                Ok(stored) => {
                    assert_eq!(stored.key, task.key);
                    winners += usize::from(task.key.id.as_str() == "wanted");
                }
                Err(error) => {
                    let wanted = Error::DuplicateId { key: key("q", "wanted"), state: State::Pending };
                    assert_eq!((task.key.id.as_str(), error), ("wanted", wanted));
                }
            }
        }
    }
    assert_eq!((winners, s.stats().await.pending), (1, 60 + 90 + 1));
    assert!(s.calls("evalsha").await < 60, "they travel together");
}
