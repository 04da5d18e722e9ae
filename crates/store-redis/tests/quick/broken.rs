//! Full memory and keys of wrong types: what was asked is done whole or not at all, and nobody is lost.

use poolwright_broker::{Dispatch, Error, Inspect, Submit};
use poolwright_conformance::builders::{archive, complete, key, task, tasks};
use poolwright_core::Settlement;

use crate::scene::{Scene, held, ids, names, tasks_of};
use crate::stage::keyspace::Keyspace;

impl Scene {
    async fn keyspace(&self) -> Keyspace {
        Keyspace::of(self.harness.servers().single()).await
    }

    async fn memory(&self, limit: &str) {
        self.redis(&["CONFIG", "SET", "maxmemory", limit]).await;
    }

    /// Puts a text in the place of a key, has it refused, and puts back what was there.
    async fn refused_with_a_wrong<T: std::fmt::Debug>(
        &self,
        wrong: &str,
        call: impl AsyncFn() -> Result<T, Error>,
    ) {
        let had = self.redis(&["EXISTS", wrong]).await == 1;
        if had {
            self.redis(&["RENAME", wrong, "aside"]).await;
        }
        match wrong {
            // What is a text by rights.
            "asynq:{q}:claims" => self.redis(&["LPUSH", wrong, "rubbish"]).await,
            _ => self.redis(&["SET", wrong, "rubbish"]).await,
        };
        let before = self.keyspace().await;
        let answer = call().await;
        assert!(matches!(answer, Err(Error::Refused { .. })), "{wrong}: {answer:?}");
        assert_eq!(self.keyspace().await, before, "{wrong}");
        self.redis(&["DEL", wrong]).await;
        if had {
            self.redis(&["RENAME", "aside", wrong]).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_memory_hands_out_and_ends_and_takes_nothing_new() {
    let s = Scene::new().await;
    s.enqueue(tasks(names("a", 300))).await;
    s.enqueue(names("i", 20).iter().map(|id| task(id).subject("doc", "1").build()).collect()).await;
    s.other.request_cancel(vec![key("q", "a0150")]).await.unwrap();
    s.set("a0160", "msg", b"\x0a\xffrubbish").await;
    let first = s.claim(50).await;
    s.memory("1000000").await;
    for batch in [tasks(["new"]), tasks(["new", "new2"]), vec![task("new").subject("doc", "2").build()]] {
        let before = s.keyspace().await;
        let refused = s.store.enqueue(batch).await;
        assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
        assert_eq!(s.keyspace().await, before);
    }
    // Plain ones; then one that is flagged and one that cannot be read: all go back and are taken one by one.
    let second = s.claim(50).await;
    let reply = s.claim_from(100, &["q"]).await;
    assert_eq!(reply.discarded, 1);
    let third = tasks_of(reply);
    let all = names("a", 300);
    let is_well = |id: &&String| *id != "a0150" && *id != "a0160";
    let wanted: Vec<_> = all[100..].iter().filter(is_well).take(100).collect();
    assert_eq!((second.len(), ids(&third)), (50, wanted.iter().map(|id| id.as_str()).collect()));
    // Out of the middle of the active ones, so that some are put back.
    let middle: Vec<_> =
        first.iter().enumerate().filter(|(at, _)| at % 4 != 1).map(|(_, task)| task.clone()).collect();
    s.end(&middle).await;
    let kept: Vec<_> =
        first.iter().enumerate().filter(|(at, _)| at % 4 == 1).map(|(_, task)| task.clone()).collect();
    assert_eq!(s.list("active").await, ids(&[kept.clone(), second.clone(), third.clone()].concat()));
    // A release and what goes with it.
    let back = vec![(held(&kept[3]), Settlement::Release), (held(&kept[4]), complete())];
    for outcome in s.settle(back).await {
        outcome.unwrap();
    }
    let rest = s.claim(999).await;
    assert_eq!(rest[0].key, kept[3].key);
    let mut kept = kept;
    kept.drain(3..5);
    s.end(&[kept, second, third, rest].concat()).await;
    assert_eq!((s.list("active").await.len(), s.stats().await.processed), (0, 318));
    assert!(!s.keys().await.iter().any(|key| key.contains("subject:")));
    s.memory("0").await;
    s.enqueue(tasks(["new"])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_type_refuses_a_claim_and_changes_nothing() {
    let s = Scene::new().await;
    let running = s.running(tasks(names("r", 5))).await;
    s.enqueue(tasks(names("a", 8))).await;
    for wrong in ["pending", "active", "lease"] {
        let name = format!("asynq:{{q}}:{wrong}");
        s.refused_with_a_wrong(&name, async || s.store.claim(s.request(3, &["q"])).await).await;
        s.refused_with_a_wrong(&name, async || s.store.claim(s.request(3, &["r", "q"])).await).await;
    }
    s.end(&running).await;
    assert_eq!(ids(&s.claim(9).await), names("a", 8));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_type_refuses_settlements_and_changes_nothing() {
    let s = Scene::new().await;
    let running = s.running(tasks(names("a", 9))).await;
    let told = || running.iter().map(|task| (held(task), complete()));
    let with_one_archived = || {
        let mut told: Vec<_> = told().collect();
        told[4].1 = archive();
        told
    };
    for wrong in ["active", "lease"] {
        let name = format!("asynq:{{q}}:{wrong}");
        s.refused_with_a_wrong(&name, async || s.store.settle(told().collect()).await).await;
        s.refused_with_a_wrong(&name, async || s.store.settle(with_one_archived()).await).await;
    }
    for wrong in ["pending", "archived", "retry", "completed"] {
        let name = format!("asynq:{{q}}:{wrong}");
        s.refused_with_a_wrong(&name, async || s.store.settle(with_one_archived()).await).await;
    }
    s.end(&running).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_type_refuses_an_enqueue_and_changes_nothing() {
    let s = Scene::new().await;
    s.enqueue(tasks(["a"])).await;
    s.enqueue(vec![task("a").queue("r").build()]).await;
    let batches = [
        tasks(["b"]),
        tasks(["b", "c"]),
        vec![task("b").subject("doc", "1").build()],
        vec![task("b").build(), task("b").queue("r").build()],
        vec![task("b").queue("r").build(), task("b").build()],
    ];
    for batch in batches {
        for wrong in ["asynq:{q}:pending", "asynq:queues"] {
            s.refused_with_a_wrong(wrong, async || s.store.enqueue(batch.clone()).await).await;
        }
    }
}
