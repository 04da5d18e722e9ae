//! The index of subjects and scopes: it lists what exists, and nothing else.

use poolwright_broker::{Error, Find, Found};
use poolwright_core::{Scope, Settlement, State, Subject};

use crate::Outcome;
use crate::builders::{QUEUE, archive, complete, key, queue, task};
use crate::stage::{STATES, Stage};

async fn by_subject(s: &Stage<'_>, kind: &str, id: &str) -> Result<Found, Error> {
    s.broker().find(Find::Subject(Subject::new(kind, id)), 1_000).await
}

async fn by_scope(s: &Stage<'_>, kind: &str, id: &str) -> Result<Found, Error> {
    s.broker().find(Find::Scope(Scope::new(kind, id)), 1_000).await
}

/// What was found, as `queue/id`, sorted.
fn names(found: &Found) -> Vec<String> {
    let mut names: Vec<_> = found.tasks.iter().map(|(key, ..)| key.to_string()).collect();
    names.sort_unstable();
    names
}

pub(crate) async fn tasks_are_found_in_all_queues_and_states(s: Stage<'_>) -> Outcome {
    for state in STATES {
        let of = task(state.as_str()).task_type(state.as_str()).queue(state.as_str());
        s.reach(state, of.subject("doc", "1").scope("base", "b")).await?;
    }
    s.enqueue(task("other").subject("doc", "2").scope("base", "c")).await?;
    for mut found in [by_subject(&s, "doc", "1").await?, by_scope(&s, "base", "b").await?] {
        assert!(found.complete);
        found.tasks.sort_unstable_by_key(|(_, state, _)| *state);
        let seen: Vec<_> = found
            .tasks
            .iter()
            .map(|(key, state, task_type)| (key.clone(), *state, task_type.as_str()))
            .collect();
        let expected = State::ALL.map(|state| (key(state.as_str(), state.as_str()), state, state.as_str()));
        assert_eq!(seen, expected);
    }
    Ok(())
}

pub(crate) async fn a_task_is_found_by_each_of_its_subjects_and_scopes(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a").subject("doc", "1").subject("doc", "2").subject("user", "1").scope("base", "1"))
        .await?;
    s.enqueue(task("b").subject("doc", "2").scope("base", "1").scope("base", "2")).await?;
    assert_eq!(names(&by_subject(&s, "doc", "1").await?), ["q/a"]);
    assert_eq!(names(&by_subject(&s, "doc", "2").await?), ["q/a", "q/b"]);
    assert_eq!(names(&by_subject(&s, "user", "1").await?), ["q/a"]);
    assert_eq!(names(&by_scope(&s, "base", "1").await?), ["q/a", "q/b"]);
    assert_eq!(names(&by_scope(&s, "base", "2").await?), ["q/b"]);
    Ok(())
}

pub(crate) async fn a_subject_named_twice_finds_its_task_once(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a").subject("doc", "1").subject("doc", "1").scope("b", "1").scope("b", "1")).await?;
    assert_eq!(names(&by_subject(&s, "doc", "1").await?), ["q/a"]);
    assert_eq!(names(&by_scope(&s, "b", "1").await?), ["q/a"]);
    let taken = s.take().await?;
    s.settle(&taken, complete()).await?;
    assert_eq!(names(&by_subject(&s, "doc", "1").await?), [""; 0]);
    Ok(())
}

pub(crate) async fn names_that_look_alike_do_not_meet(s: Stage<'_>) -> Outcome {
    let pairs = [
        ("a", "b/c"),
        ("a/b", "c"),
        ("a", "b:c"),
        ("a:b", "c"),
        ("A", "b/c"),
        ("a", "b/c "),
        ("", "a"),
        ("a", ""),
        ("é", "e\u{301}"),
        ("e\u{301}", "é"),
        ("%", "_"),
        ("\u{1f4c4}", "日本語"),
    ];
    for (at, (kind, id)) in pairs.into_iter().enumerate() {
        s.enqueue(task(&format!("s{at}")).subject(kind, id)).await?;
        s.enqueue(task(&format!("o{at}")).scope(kind, id)).await?;
    }
    for (at, (kind, id)) in pairs.into_iter().enumerate() {
        assert_eq!(names(&by_subject(&s, kind, id).await?), [format!("q/s{at}")], "{kind:?} {id:?}");
        assert_eq!(names(&by_scope(&s, kind, id).await?), [format!("q/o{at}")], "{kind:?} {id:?}");
    }
    Ok(())
}

pub(crate) async fn every_exit_leaves_the_index(s: Stage<'_>) -> Outcome {
    let of = |id: &str| task(id).subject("doc", "1").scope("base", "1");
    for (id, settlement) in [("a", complete()), ("b", Settlement::Discard)] {
        s.settled(of(id), settlement).await?;
    }
    for state in STATES.into_iter().filter(|state| *state != State::Active) {
        s.reach(state, of(state.as_str())).await?;
        s.broker().delete(key(QUEUE, state.as_str())).await?;
    }
    s.enqueue(of("flagged")).await?;
    s.broker().request_cancel(vec![key(QUEUE, "flagged")]).await?;
    assert_eq!(names(&by_subject(&s, "doc", "1").await?), ["q/flagged"], "it exists until a claim meets it");
    s.claim(1).await?;
    s.settled(of("swept"), archive()).await?;
    s.sweep(0, std::time::Duration::MAX, false).await?;
    s.enqueue(of("removed").queue("other")).await?;
    s.broker().remove_queue(queue("other"), true).await?;
    for found in [by_subject(&s, "doc", "1").await?, by_scope(&s, "base", "1").await?] {
        assert_eq!(found, Found { tasks: vec![], complete: true });
    }
    Ok(())
}

pub(crate) async fn a_limited_search_says_that_it_is_not_complete(s: Stage<'_>) -> Outcome {
    s.enqueue_all((0..5).map(|n| task(&n.to_string()).subject("doc", "1").build()).collect()).await?;
    let found = s.broker().find(Find::Subject(Subject::new("doc", "1")), 3).await?;
    assert_eq!((found.tasks.len(), found.complete), (3, false));
    let found = s.broker().find(Find::Subject(Subject::new("doc", "1")), 6).await?;
    assert_eq!((found.tasks.len(), found.complete), (5, true));
    let found = s.broker().find(Find::Subject(Subject::new("doc", "none")), 6).await?;
    assert_eq!(found, Found { tasks: vec![], complete: true });
    Ok(())
}

pub(crate) async fn a_healthy_store_has_nothing_to_reconcile(s: Stage<'_>) -> Outcome {
    for state in STATES {
        let of = task(state.as_str()).subject("doc", "1").unique(state.as_str(), 1_000);
        s.reach(state, of).await?;
    }
    let mut before = Vec::new();
    for state in STATES {
        before.push(s.the(state.as_str()).await?);
    }
    let numbers = s.stats().await?;
    let mended = s.broker().reconcile(vec![queue(QUEUE), queue("unknown")]).await?;
    assert_eq!(mended, poolwright_broker::Reconciled::default());
    for task in before {
        assert_eq!(s.the(task.key.id.as_str()).await?, task);
    }
    assert_eq!(s.stats().await?, numbers);
    assert_eq!(by_subject(&s, "doc", "1").await?.tasks.len(), 6);
    Ok(())
}
