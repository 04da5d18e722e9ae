//! The ledger on a file: each letter once, listed as asked for; settings that last.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod stage;

use std::time::Duration;

use poolwright_broker::Broker;
use poolwright_conformance::Harness;
use poolwright_core::{
    Class, DeadLetter, DeadLetterSink, Headers, Scope, Subject, Tenant, Timestamp, Token, TypeName,
};
use poolwright_ledger::{DeadLetters, Error, Filter, LetterId, ListRequest, Replayed, Settings};
use rusqlite::Connection;
use stage::FileHarness;
use stage::tasks::key;

fn letter(id: &str, attempt: u8) -> DeadLetter {
    DeadLetter {
        task: key(id),
        token: Some(Token::from_bytes([attempt; 16])),
        task_type: TypeName::new("document:process").unwrap(),
        payload: vec![0, 255, 7].into(),
        headers: Headers::from([("traceparent".to_owned(), "00-1".to_owned())]),
        class: Class::Permanent,
        error: "no such page: é".into(),
        attempts: 3,
        failed_at: Timestamp::from_micros(1_900_000_000_000_001),
        subjects: vec![Subject::new("knowledge", "kn_42")],
        scopes: vec![Scope::new("knowledge_base", "kb_7")],
        tenant: Some(Tenant("t1".into())),
    }
}

fn all() -> ListRequest {
    ListRequest::default()
}

#[tokio::test]
async fn a_letter_comes_back_as_it_was_recorded_and_only_once() {
    let harness = FileHarness::new(1);
    let store = harness.store();
    let never_ran = DeadLetter { token: None, tenant: None, ..letter("b", 1) };
    store.record(&[letter("a", 1), never_ran.clone()]).await.unwrap();
    store.record(&[letter("a", 1), never_ran.clone()]).await.unwrap();
    store.record(&[letter("a", 2)]).await.unwrap();
    let page = store.list(all()).await.unwrap();
    let letters: Vec<_> = page.letters.iter().map(|stored| stored.letter.clone()).collect();
    assert_eq!(letters, [letter("a", 2), never_ran, letter("a", 1)]);
    assert_eq!(store.letter(page.letters[0].id).await.unwrap().unwrap(), page.letters[0]);
    assert_eq!(store.letter(LetterId(99)).await.unwrap(), None);
}

#[tokio::test]
async fn pages_go_on_where_they_ended_and_filters_hold_together() {
    let harness = FileHarness::new(1);
    let store = harness.store();
    let letters: Vec<_> = (0..10)
        .map(|nth| {
            let mut letter = letter(&format!("t{nth}"), 1);
            if nth % 2 == 0 {
                letter.class = Class::Crashed;
                letter.scopes.clear();
            }
            letter
        })
        .collect();
    store.record(&letters).await.unwrap();
    let mut seen = Vec::new();
    let mut request = ListRequest { limit: 3, ..all() };
    loop {
        let page = store.list(request.clone()).await.unwrap();
        seen.extend(page.letters.iter().map(|stored| stored.letter.task.id.to_string()));
        let Some(next) = page.next else { break };
        request.before = Some(next);
    }
    assert_eq!(seen, (0..10).rev().map(|nth| format!("t{nth}")).collect::<Vec<_>>());
    let crashed = Filter { class: Some(Class::Crashed), ..Filter::default() };
    assert_eq!(store.count(crashed.clone()).await.unwrap(), 5);
    let reach = Some(("knowledge_base".to_owned(), "kb_7".to_owned()));
    assert_eq!(store.count(Filter { reach: reach.clone(), ..Filter::default() }).await.unwrap(), 5);
    assert_eq!(store.count(Filter { reach, ..crashed }).await.unwrap(), 0);
    for (filter, expected) in [
        (Filter { task_type: Some("document:process".into()), ..Filter::default() }, 10),
        (Filter { task_type: Some("other".into()), ..Filter::default() }, 0),
        (Filter { tenant: Some("t1".into()), ..Filter::default() }, 10),
        (Filter { queue: Some("low".into()), ..Filter::default() }, 0),
    ] {
        assert_eq!(store.count(filter.clone()).await.unwrap(), expected, "{filter:?}");
        assert_eq!(store.list(ListRequest { filter, ..all() }).await.unwrap().letters.len() as u64, expected);
    }
}

#[tokio::test]
async fn a_replay_is_noted_and_a_letter_can_be_deleted() {
    let harness = FileHarness::new(1);
    let store = harness.store();
    store.record(&[letter("a", 1), letter("b", 1)]).await.unwrap();
    let page = store.list(all()).await.unwrap();
    let (b, a) = (page.letters[0].id, page.letters[1].id);
    let replayed = Replayed { task: key("a-again"), at: harness.now() };
    store.mark_replayed(a, replayed.clone()).await.unwrap();
    assert_eq!(store.letter(a).await.unwrap().unwrap().replayed, Some(replayed.clone()));
    let unreplayed = Filter { unreplayed: true, ..Filter::default() };
    let left = store.list(ListRequest { filter: unreplayed, ..all() }).await.unwrap();
    assert_eq!(left.letters.iter().map(|stored| stored.id).collect::<Vec<_>>(), [b]);
    assert_eq!(store.mark_replayed(LetterId(99), replayed).await, Err(Error::NoLetter(LetterId(99))));
    assert!(store.delete_letter(b).await.unwrap());
    assert!(!store.delete_letter(b).await.unwrap());
    // A number that people have seen is not given to another letter.
    store.record(&[letter("c", 1)]).await.unwrap();
    assert!(store.list(all()).await.unwrap().letters[0].id > b);
}

#[tokio::test]
async fn a_letter_that_does_not_decode_is_named() {
    let harness = FileHarness::new(1);
    let store = harness.store();
    store.record(&[letter("a", 1)]).await.unwrap();
    Connection::open(harness.path()).unwrap().execute("UPDATE dead_letters SET class = 'novel'", []).unwrap();
    let error = store.list(all()).await.unwrap_err();
    assert!(matches!(&error, Error::Corrupt { what } if what.contains("dead letter 1")), "{error}");
}

#[tokio::test]
async fn settings_are_set_replaced_and_unset_and_last() {
    let harness = FileHarness::new(1);
    let store = harness.store();
    store.set("b".to_owned(), "1".to_owned()).await.unwrap();
    store.set("a".to_owned(), "x".to_owned()).await.unwrap();
    harness.elapse(Duration::from_secs(5)).await;
    store.set("b".to_owned(), "2".to_owned()).await.unwrap();
    harness.reopen().await;
    let store = harness.store();
    let settings = store.settings().await.unwrap();
    let seen: Vec<_> = settings.iter().map(|s| (s.key.as_str(), s.value.as_str())).collect();
    assert_eq!(seen, [("a", "x"), ("b", "2")]);
    assert_eq!(settings[1].at, harness.now());
    assert_eq!(store.snapshot().await.unwrap()["b"], "2");
    assert!(store.unset("b".to_owned()).await.unwrap());
    assert!(!store.unset("b".to_owned()).await.unwrap());
    let error = store.set(" ".to_owned(), "1".to_owned()).await.unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
}

#[tokio::test]
async fn a_closed_ledger_refuses() {
    let harness = FileHarness::new(1);
    let store = harness.store();
    store.close().await.unwrap();
    assert!(matches!(store.list(all()).await, Err(Error::Refused { .. })));
    assert!(matches!(store.set("a".to_owned(), "1".to_owned()).await, Err(Error::Refused { .. })));
    assert!(store.record(&[letter("a", 1)]).await.is_err());
}
