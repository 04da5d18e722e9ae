//! Rows that do not decode: set aside by whoever comes across them, shown, and in nobody's way.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod stage;

use std::time::Duration;

use poolwright_broker::{Dispatch, Inspect, PageRequest, Submit, TakeOver, Upkeep};
use poolwright_conformance::Harness;
use poolwright_core::{Chance, OnConflict, Settlement, State, Subject, Timestamp, UniqueLock};
use rusqlite::Connection;
use stage::tasks::{done, key, queue, request, task};
use stage::{FileHarness, assert_consistent, damage};

async fn quarantined(harness: &FileHarness) -> Vec<(String, String)> {
    let entries = harness.store().quarantine(queue(), 100).await.unwrap();
    entries.into_iter().map(|entry| (entry.id, entry.reason)).collect()
}

#[tokio::test]
async fn a_claim_passes_over_what_does_not_decode() {
    let harness = FileHarness::new(1);
    let store = harness.store();
    let chance = Chance::seeded(1);
    let columns: [(&str, &[u8]); 4] =
        [("about", b"{"), ("type", b""), ("id", b"\xff\xfe"), ("failure", b"{\"class\":\"novel\"}")];
    for (column, _) in columns {
        store.enqueue(vec![task(column)]).await.unwrap().remove(0).unwrap();
    }
    store.enqueue(vec![task("good")]).await.unwrap().remove(0).unwrap();
    for (column, bytes) in columns {
        damage(&harness.path(), &key(column), column, bytes);
    }
    let claims = store.claim(request(5, &chance)).await.unwrap().claims;
    assert_eq!(claims.iter().map(|claim| claim.task.key.clone()).collect::<Vec<_>>(), [key("good")]);
    let entries = quarantined(&harness).await;
    assert_eq!(entries.len(), 4, "{entries:?}");
    for column in ["about", "type", "failure"] {
        assert!(entries.iter().any(|(id, reason)| id == column && !reason.is_empty()), "{entries:?}");
    }
    assert_eq!(store.queue_stats(vec![queue()]).await.unwrap()[0].quarantined, 4);
    assert_consistent(&harness.path());
}

#[tokio::test]
async fn what_is_set_aside_keeps_what_was_stored_and_frees_its_lock() {
    let harness = FileHarness::new(1);
    let store = harness.store();
    let mut locked = task("a");
    locked.unique = Some(UniqueLock::new("lock", Duration::from_secs(60)));
    locked.subjects = vec![Subject::new("knowledge", "kn_42")];
    locked.payload = vec![b'p'; 5_000].into();
    store.enqueue(vec![locked.clone()]).await.unwrap().remove(0).unwrap();
    damage(&harness.path(), &key("a"), "about", b"no JSON");
    assert_eq!(store.get(key("a")).await.unwrap(), None);
    let entry = store.quarantine(queue(), 1).await.unwrap().remove(0);
    assert_eq!((entry.id.as_str(), entry.at), ("a", harness.now()));
    assert!(entry.reason.starts_with("about:"), "{}", entry.reason);
    let raw = String::from_utf8(entry.raw.to_vec()).unwrap();
    assert!(raw.contains("no JSON") && raw.contains(&"p".repeat(5_000)), "{raw}");
    // Its index entry cannot be found by it any more; nobody sees it, and a reconciliation removes it.
    locked.key = key("b");
    store.enqueue(vec![locked]).await.unwrap().remove(0).unwrap();
    assert_eq!(store.reconcile(vec![queue()]).await.unwrap().index_entries, 1);
    assert_consistent(&harness.path());
}

#[tokio::test]
async fn a_page_shows_what_is_left_and_where_it_goes_on() {
    let harness = FileHarness::new(1);
    let store = harness.store();
    store.enqueue((0..6).map(|nth| task(&nth.to_string())).collect()).await.unwrap();
    for nth in 2..6 {
        damage(&harness.path(), &key(&nth.to_string()), "about", b"[");
    }
    let request = PageRequest { queue: queue(), state: State::Pending, after: None, limit: 1 };
    let first = store.page(request.clone()).await.unwrap();
    assert_eq!(first.tasks[0].key, key("1"));
    let second = store.page(PageRequest { after: first.next, ..request }).await.unwrap();
    assert_eq!((second.tasks[0].key.clone(), second.next), (key("0"), None));
    assert_eq!(quarantined(&harness).await.len(), 4);
}

#[tokio::test]
async fn a_take_over_passes_over_what_does_not_decode() {
    let harness = FileHarness::new(1);
    let store = harness.store();
    let chance = Chance::seeded(1);
    store.enqueue(vec![task("bad"), task("good")]).await.unwrap();
    assert_eq!(store.claim(request(2, &chance)).await.unwrap().claims.len(), 2);
    damage(&harness.path(), &key("bad"), "about", b"{]");
    harness.elapse(Duration::from_secs(31)).await;
    let request = TakeOver {
        queues: vec![queue()],
        limit: 10,
        lease: Duration::from_secs(10),
        not_after: Timestamp::MAX,
    };
    let taken = store.take_over(request).await.unwrap();
    assert_eq!(taken.iter().map(|task| task.key.clone()).collect::<Vec<_>>(), [key("good")]);
    assert_eq!(store.queue_stats(vec![queue()]).await.unwrap()[0].active, 1);
    assert_consistent(&harness.path());
}

#[tokio::test]
async fn a_follow_up_that_does_not_decode_is_set_aside_and_its_task_ends() {
    let harness = FileHarness::new(1);
    let store = harness.store();
    let chance = Chance::seeded(1);
    let mut again = task("a");
    again.on_conflict = OnConflict::RunAgain;
    store.enqueue(vec![again.clone()]).await.unwrap().remove(0).unwrap();
    let running = store.claim(request(1, &chance)).await.unwrap().claims.remove(0).task;
    store.enqueue(vec![again]).await.unwrap().remove(0).unwrap();
    Connection::open(harness.path()).unwrap().execute("UPDATE follow_ups SET body = '{'", []).unwrap();
    let outcome = store.settle(vec![done(&running)]).await.unwrap().remove(0).unwrap();
    assert_eq!(outcome.state, None);
    assert_eq!(store.get(key("a")).await.unwrap(), None);
    let entries = quarantined(&harness).await;
    assert!(entries[0].1.contains("its follow-up does not decode"), "{entries:?}");
    assert_consistent(&harness.path());
}

#[tokio::test]
async fn a_missing_large_payload_is_poison_and_settles_all_the_same() {
    let harness = FileHarness::new(1);
    let store = harness.store();
    let chance = Chance::seeded(1);
    let mut large = task("a");
    large.payload = vec![b'p'; 5_000].into();
    let mut held = large.clone();
    held.key = key("held");
    store.enqueue(vec![held, large]).await.unwrap();
    let running = store.claim(request(1, &chance)).await.unwrap().claims.remove(0).task;
    Connection::open(harness.path()).unwrap().execute("DELETE FROM payloads", []).unwrap();
    assert!(store.claim(request(1, &chance)).await.unwrap().claims.is_empty());
    let retry = Settlement::Retry {
        after: Duration::from_secs(1),
        error: "e".to_owned(),
        class: poolwright_core::Class::Transient,
        charge: poolwright_core::Charge::Retry,
    };
    let (held, _) = done(&running);
    let outcome = store.settle(vec![(held, retry)]).await.unwrap().remove(0).unwrap();
    assert_eq!(outcome.state, Some(State::Retry));
    assert_eq!(quarantined(&harness).await.len(), 1);
}
