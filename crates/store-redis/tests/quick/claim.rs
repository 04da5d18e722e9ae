//! Flagged, unreadable, released and given-back tasks among plain ones: order kept, nobody lost, nobody handed out twice.

use std::collections::HashSet;
use std::time::Duration;

use poolwright_broker::{ClaimRequest, Dispatch, Held, Inspect};
use poolwright_conformance::Harness;
use poolwright_conformance::builders::{demand, key, queue, retry, retry_as, task, tasks};
use poolwright_core::{Charge, Class, Settlement, State};

use crate::scene::{Scene, held, ids, names, tasks_of};
use crate::stage::go_server;

/// What a pending task may have become.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Odd {
    Flagged,
    FlaggedWithFollowUp,
    Gone,
    Garbage,
    Empty,
    WrongType,
    NoMessage,
    Released,
    Indexed,
    Locked,
    WithoutWaitingTime,
    WithOneFieldLess,
}

impl Odd {
    const ALL: [Self; 12] = [
        Self::Flagged,
        Self::FlaggedWithFollowUp,
        Self::Gone,
        Self::Garbage,
        Self::Empty,
        Self::WrongType,
        Self::NoMessage,
        Self::Released,
        Self::Indexed,
        Self::Locked,
        Self::WithoutWaitingTime,
        Self::WithOneFieldLess,
    ];

    const fn is_claimed(self) -> bool {
        matches!(
            self,
            Self::Released | Self::Indexed | Self::Locked | Self::WithoutWaitingTime | Self::WithOneFieldLess
        )
    }

    const fn is_discarded(self) -> bool {
        matches!(self, Self::Flagged | Self::FlaggedWithFollowUp)
    }

    /// Makes a task of this queue so.
    async fn befall(self, s: &Scene, of: &str, id: &str) {
        let hash = format!("asynq:{{{of}}}:t:{id}");
        let flag = async || drop(s.other.request_cancel(vec![key(of, id)]).await.unwrap());
        match self {
            Self::Flagged => flag().await,
            Self::FlaggedWithFollowUp => {
                // As it is after a run that was given back.
                let again = task(id).queue(of).payload("again").run_again().build();
                again_after_release(s, again).await;
                flag().await;
            }
            Self::Gone => drop(s.redis(&["DEL", &hash]).await),
            Self::Garbage => drop(s.redis(&[b"HSET", hash.as_bytes(), b"msg", b"\x0a\xffrubbish"]).await),
            Self::Empty => drop(s.redis(&["HSET", &hash, "msg", ""]).await),
            Self::WrongType => {
                s.redis(&["DEL", &hash]).await;
                s.redis(&["LPUSH", &hash, "rubbish"]).await;
            }
            Self::NoMessage => drop(s.redis(&["HDEL", &hash, "msg"]).await),
            Self::WithoutWaitingTime => drop(s.redis(&["HDEL", &hash, "pending_since"]).await),
            Self::WithOneFieldLess => {
                s.redis(&["HDEL", &hash, "pending_since"]).await;
                s.redis(&["HSET", &hash, "deferrals", "3"]).await;
            }
            Self::Released | Self::Indexed | Self::Locked => {}
        }
    }
}

/// The first task of its queue runs, gets a follow-up and is given back.
async fn again_after_release(s: &Scene, again: poolwright_core::NewTask) {
    use poolwright_broker::Submit;

    let of = again.key.queue.as_str().to_owned();
    let mut before = Vec::new();
    loop {
        let task = tasks_of(s.claim_from(1, &[&of]).await).remove(0);
        let is_it = task.key == again.key;
        before.push((held(&task), Settlement::Release));
        if is_it {
            break;
        }
    }
    s.other.enqueue(vec![again]).await.unwrap().remove(0).unwrap();
    for outcome in s.settle(before).await {
        outcome.unwrap();
    }
}

/// Seven tasks in each of two queues, of which one has become odd; and how often it is handed out.
async fn odd_among_plain(odd: Odd, at: usize, slots: u32) {
    let s = Scene::new().await;
    let of_queue = |of: &str| names(of, 7);
    for of in ["q", "r"] {
        let build = |(nth, id): (usize, &String)| {
            let task = task(id).queue(of);
            match odd {
                Odd::Indexed if nth == at => task.subject("doc", "1").build(),
                Odd::Locked if nth == at => task.unique("lock", 900).build(),
                _ => task.build(),
            }
        };
        s.enqueue(of_queue(of).iter().enumerate().map(build).collect()).await;
    }
    let id = &of_queue("q")[at];
    odd.befall(&s, "q", id).await;
    if odd == Odd::Released {
        let released: Vec<_> = s.claim(u32::try_from(at + 1).unwrap()).await;
        assert_eq!(ids(&released).last(), Some(&id.as_str()));
        s.settle(released.iter().map(|task| (held(task), Settlement::Release)).collect()).await;
    }
    let (mut got, mut discarded, mut tokens) = (Vec::new(), 0, HashSet::new());
    loop {
        let reply = s.claim_from(slots, &["q", "r"]).await;
        discarded += reply.discarded;
        if reply.claims.is_empty() {
            break;
        }
        for task in tasks_of(reply) {
            assert!(tokens.insert(held(&task).token), "a token is one attempt's");
            got.push(task);
        }
    }
    for of in ["q", "r"] {
        let mut wanted = of_queue(of);
        if of == "q" && !odd.is_claimed() {
            let id = wanted.remove(at);
            // Its follow-up begins behind all that waits.
            wanted.extend((odd == Odd::FlaggedWithFollowUp).then_some(id));
        }
        let mine: Vec<_> = got.iter().filter(|task| task.key.queue == queue(of)).cloned().collect();
        assert_eq!(ids(&mine), wanted, "{odd:?} at {at}, {slots} at once");
    }
    assert_eq!(discarded, u32::from(odd.is_discarded()), "{odd:?} at {at}, {slots} at once");
    let stats = s.stats().await;
    let aside = u64::from(!odd.is_claimed() && !odd.is_discarded());
    assert_eq!((stats.pending, stats.quarantined), (0, aside), "{odd:?} at {at}, {slots} at once");
    s.end(&got).await;
    if odd == Odd::WrongType {
        s.redis(&["DEL", &format!("asynq:{{q}}:t:{id}")]).await;
    }
    let left: Vec<_> = s.keys().await.into_iter().filter(|key| key.contains(":t:")).collect();
    assert_eq!(left, [""; 0], "{odd:?} at {at}, {slots} at once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_out_of_the_ordinary_costs_the_others_nothing() {
    for odd in Odd::ALL {
        for (at, slots) in [(0, 14), (3, 14), (6, 14), (3, 4), (3, 1), (0, 5)] {
            odd_among_plain(odd, at, slots).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_of_them_are_each_done_right() {
    let s = Scene::new().await;
    let names = names("a", 500);
    s.enqueue(tasks(&names)).await;
    let odd = [Odd::Flagged, Odd::Gone, Odd::Garbage, Odd::Empty, Odd::NoMessage, Odd::WithoutWaitingTime];
    let mut wanted = Vec::new();
    let (mut discarded, mut aside) = (0, 0);
    for (nth, id) in names.iter().enumerate() {
        let odd = odd[nth / 17 % odd.len()];
        if nth % 17 != 0 {
            wanted.push(id.as_str());
            continue;
        }
        odd.befall(&s, "q", id).await;
        match odd {
            odd if odd.is_claimed() => wanted.push(id),
            odd if odd.is_discarded() => discarded += 1,
            _ => aside += 1,
        }
    }
    let reply = s.claim_from(500, &["q"]).await;
    assert_eq!(reply.discarded, discarded);
    let got = tasks_of(reply);
    assert_eq!(ids(&got), wanted);
    assert_eq!((s.stats().await.quarantined, s.list("pending").await.len()), (aside, 0));
    assert_eq!(s.list("active").await, wanted);
    s.end(&got).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plain_tasks_are_handed_out_together_with_all_that_a_claim_gives() {
    let s = Scene::new().await;
    s.enqueue(tasks(names("a", 300))).await;
    s.pass(5).await;
    let claimed = s.claim(200).await;
    assert_eq!((s.calls("hgetall").await, s.calls("rpop").await), (0, 1));
    let now = s.harness.now();
    for task in &claimed {
        assert_eq!((task.state, task.started_at), (State::Active, Some(now)));
        assert_eq!(task.lease_until, Some(now + Duration::from_secs(30)));
        assert_eq!(
            (task.pending_since, task.due, task.enqueued_at),
            (None, None, now - Duration::from_secs(5))
        );
    }
    let shown = s.get("a0007").await.unwrap();
    assert_eq!(shown, claimed[7]);
    assert_eq!(s.list("active").await.len(), 200);
    assert_eq!(s.list("pending").await.len(), 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_queue_gives_nothing_and_blocks_no_other() {
    let s = Scene::new().await;
    for of in ["q", "r"] {
        s.enqueue(names("a", 5).iter().map(|id| task(id).queue(of).build()).collect()).await;
    }
    s.other.pause(queue("q"), "no".into()).await.unwrap();
    let got = tasks_of(s.claim_from(9, &["q", "r"]).await);
    assert_eq!(
        (ids(&got), got[0].key.queue.as_str()),
        (vec!["a0000", "a0001", "a0002", "a0003", "a0004"], "r")
    );
    s.other.resume(queue("q")).await.unwrap();
    assert_eq!(tasks_of(s.claim_from(9, &["q", "r"]).await).len(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn released_tasks_come_back_in_their_old_order_with_their_old_waiting_time() {
    let s = Scene::new().await;
    let since = s.harness.now();
    let first = s.running(tasks(names("a", 6))).await;
    s.pass(3).await;
    let later = s.harness.now();
    s.enqueue(tasks(names("b", 3))).await;
    // In an order of their own, together with one that ends and one that is tried again.
    let mut batch: Vec<_> = [4, 0, 2, 5].map(|at: usize| (held(&first[at]), Settlement::Release)).into();
    batch.insert(1, (held(&first[1]), poolwright_conformance::builders::complete()));
    batch.insert(3, (held(&first[3]), retry(0)));
    for outcome in s.settle(batch).await {
        outcome.unwrap();
    }
    let order = ["a0000", "a0002", "a0004", "a0005", "b0000", "b0001", "b0002", "a0003"];
    assert_eq!(s.list("pending").await, order);
    for (id, waits_since) in [("a0000", since), ("a0005", since), ("b0000", later), ("a0003", later)] {
        let task = s.get(id).await.unwrap();
        assert_eq!(
            (task.pending_since, task.enqueued_at),
            (Some(waits_since), if id < "b" { since } else { later })
        );
    }
    // Once more, claimed together with plain ones: their places are still the old ones.
    s.pass(1).await;
    let again = s.claim(6).await;
    assert_eq!(ids(&again), order[..6]);
    let back = [5, 1, 3].map(|at: usize| (held(&again[at]), Settlement::Release)).into();
    s.settle(back).await;
    assert_eq!(s.list("pending").await, ["a0002", "a0005", "b0001", "b0002", "a0003"]);
    assert_eq!(s.get("a0005").await.unwrap().pending_since, Some(since));
    let last = s.claim(9).await;
    assert_eq!(ids(&last), ["a0002", "a0005", "b0001", "b0002", "a0003"]);
    s.end(&last).await;
    s.end(&[again[0].clone(), again[2].clone(), again[4].clone()]).await;
    assert_eq!(s.list("active").await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_earlier_attempt_said_of_its_progress_is_forgotten_and_its_result_stays() {
    let s = Scene::new().await;
    let running = s.running(tasks(names("a", 5))).await;
    s.store.progress(held(&running[2]), 0.5, "half".into()).await.unwrap();
    s.store.store_result(held(&running[2]), "kept".into()).await.unwrap();
    s.settle(running.iter().map(|task| (held(task), Settlement::Release)).collect()).await;
    let again = s.claim(5).await;
    assert_eq!((again[2].progress.as_ref(), again[2].result.as_deref()), (None, Some(&b"kept"[..])));
    assert_eq!(s.get("a0002").await.unwrap(), again[2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_given_back_stays_where_it_is_and_all_others_are_taken() {
    let s = Scene::new().await;
    go_server::lives(&s.harness).await;
    let running = s.running(tasks(names("a", 4))).await;
    let back = |at: usize| (held(&running[at]), retry_as(0, Class::NoHandler, Charge::Nothing));
    let mut batch = vec![back(1), back(2)];
    batch.extend([0, 3].map(|at| (held(&running[at]), Settlement::Release)));
    s.settle(batch).await;
    s.enqueue(tasks(names("b", 3))).await;
    assert_eq!(s.list("pending").await, ["a0000", "a0003", "a0001", "a0002", "b0000", "b0001", "b0002"]);
    let got = s.claim(4).await;
    assert_eq!(ids(&got), ["a0000", "a0003", "b0000", "b0001"]);
    assert_eq!(s.list("pending").await, ["a0001", "a0002", "b0002"]);
    s.pass(3).await;
    let rest = s.claim(9).await;
    assert_eq!(ids(&rest), ["a0001", "a0002", "b0002"]);
    s.end(&[got, rest].concat()).await;
    assert_eq!(s.stats().await.processed, 7);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_on_a_queue_that_go_servers_share_is_theirs_and_is_settled_as_any_other() {
    let s = Scene::new().await;
    go_server::lives(&s.harness).await;
    for of in ["q", "r"] {
        s.enqueue(names("a", 5).iter().map(|id| task(id).queue(of).build()).collect()).await;
    }
    let request = ClaimRequest { lease: Duration::from_secs(10), ..s.request(10, &["q", "r"]) };
    let got = tasks_of(s.store.claim(request).await.unwrap());
    for task in &got {
        let lasts = if task.key.queue == queue("q") { 30 } else { 10 };
        assert_eq!(task.lease_until, Some(s.harness.now() + Duration::from_secs(lasts)));
    }
    s.end(&got).await;
    assert_eq!(s.calls("hgetall").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_for_more_than_one_call_gives_its_tasks_in_order_once() {
    let s = Scene::new().await;
    let names = names("a", 1_700);
    s.enqueue(tasks(&names)).await;
    s.other.request_cancel(vec![key("q", "a0600"), key("q", "a1400")]).await.unwrap();
    s.set("a0100", "msg", b"\x0a\xff").await;
    let reply = s.claim_from(1_600, &["q"]).await;
    assert_eq!(reply.discarded, 2);
    let got = tasks_of(reply);
    let is_well = |id: &&str| !["a0100", "a0600", "a1400"].contains(id);
    let wanted: Vec<_> = names.iter().map(String::as_str).filter(is_well).take(1_600).collect();
    assert_eq!(ids(&got), wanted);
    let tokens: HashSet<_> = got.iter().map(|task| held(task).token).collect();
    assert_eq!(tokens.len(), 1_600);
    s.end(&got).await;
    assert_eq!(s.claim(999).await.len(), 97);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_of_all_bytes_are_told_apart_and_settle() {
    let s = Scene::new().await;
    for (nth, id) in
        [0x0a00_0d0a_000a_0000, 0x0a0a_0a0a_0a0a_0a0a, 0, 0x2d31_0000_2530_4125].into_iter().enumerate()
    {
        // 11 tasks and 11 demands, so that a newline is in every place.
        let name = |at: usize| format!("{nth}-{at}");
        s.enqueue(tasks((0..121).map(name))).await;
        let demands = (0..11).map(|at| demand("pool", 11, &[("q", 1)], at)).collect();
        let request = ClaimRequest { id: poolwright_broker::ClaimId(id), demands, ..s.request(0, &[]) };
        let got = tasks_of(s.store.claim(request.clone()).await.unwrap());
        assert_eq!(got.len(), 121);
        let again = s.other.claim(ClaimRequest { resent: true, ..request }).await.unwrap();
        assert_eq!(tasks_of(again), got, "asked again it gives the same");
        let stale: Vec<_> = got
            .iter()
            .zip(got.iter().skip(1))
            .map(|(task, other)| {
                (Held::new(task.key.clone(), held(other).token), poolwright_conformance::builders::complete())
            })
            .collect();
        assert!(s.settle(stale).await.iter().all(Result::is_err), "another attempt's proof");
        s.end(&got).await;
    }
}
