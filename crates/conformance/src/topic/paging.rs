//! Pages: their order, their ends, and what changes meanwhile.

use poolwright_broker::{Cursor, Error, PageRequest};
use poolwright_core::{Settlement, State};

use crate::Outcome;
use crate::builders::{QUEUE, complete, keep, key, queue, retry, task, tasks};
use crate::stage::{Stage, ids};

/// Reads all pages of this size from a cursor on; gives the ids.
async fn read_on(
    s: &Stage<'_>,
    state: State,
    limit: u32,
    mut after: Option<Cursor>,
) -> Result<Vec<String>, crate::Failed> {
    let mut seen = Vec::new();
    loop {
        let page = s.broker().page(PageRequest { queue: queue(QUEUE), state, after, limit }).await?;
        assert!(page.tasks.len() <= limit as usize, "a page is never larger than asked for");
        seen.extend(ids(&page.tasks));
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(seen),
        }
    }
}

/// The first page of two, and where to go on.
async fn first_two(s: &Stage<'_>, state: State) -> Result<(Vec<String>, Option<Cursor>), crate::Failed> {
    let page = s.page(state, 2).await?;
    Ok((ids(&page.tasks), page.next))
}

pub(crate) async fn pending_tasks_come_from_the_end_of_their_queue(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["c", "a", "d", "b"])).await?;
    let taken = s.take().await?;
    s.settle(&taken, retry(0)).await?;
    assert_eq!(s.ids(State::Pending).await?, ["c", "b", "d", "a"]);
    Ok(())
}

pub(crate) async fn active_tasks_come_by_claim_latest_first(s: Stage<'_>) -> Outcome {
    for id in ["c", "a", "b"] {
        s.elapse(1).await;
        s.running(task(id)).await?;
    }
    assert_eq!(s.ids(State::Active).await?, ["b", "a", "c"]);
    Ok(())
}

pub(crate) async fn waiting_tasks_come_by_due_time(s: Stage<'_>) -> Outcome {
    for (id, after) in [("late", 300), ("b", 200), ("a", 200), ("early", 100)] {
        s.enqueue(task(id).after(after)).await?;
        s.settled(task(&format!("r-{id}")), retry(after)).await?;
    }
    assert_eq!(s.ids(State::Scheduled).await?, ["early", "a", "b", "late"]);
    assert_eq!(s.ids(State::Retry).await?, ["r-early", "r-a", "r-b", "r-late"]);
    Ok(())
}

pub(crate) async fn ended_tasks_come_latest_first(s: Stage<'_>) -> Outcome {
    for (id, kept) in [("c", 300), ("a", 100), ("b", 200)] {
        s.elapse(1).await;
        s.settled(task(id), keep(kept, b"")).await?;
        s.settled(task(&format!("x-{id}")), crate::builders::archive()).await?;
    }
    // Of the same time: by id, backwards as everything else here.
    s.settled(task("x-a2"), crate::builders::archive()).await?;
    assert_eq!(s.ids(State::Completed).await?, ["c", "b", "a"], "by expiry");
    assert_eq!(s.ids(State::Archived).await?, ["x-b", "x-a2", "x-a", "x-c"], "by failure");
    Ok(())
}

pub(crate) async fn pages_of_any_size_show_every_task_once(s: Stage<'_>) -> Outcome {
    for n in 0..7 {
        s.settled(task(&format!("retry{n}")), retry(60)).await?;
        s.settled(task(&format!("completed{n}")), keep(600, b"")).await?;
        s.settled(task(&format!("archived{n}")), crate::builders::archive()).await?;
        s.running(task(&format!("active{n}"))).await?;
        s.enqueue(task(&format!("scheduled{n}")).after(60)).await?;
    }
    s.enqueue_all((0..7).map(|n| task(&format!("pending{n}")).build()).collect()).await?;
    for state in State::ALL {
        let whole = s.ids(state).await?;
        assert_eq!(whole.len(), 7, "{state}");
        for limit in [1, 2, 3, 6, 7, 8] {
            let mut seen = read_on(&s, state, limit, None).await?;
            if state == State::Active {
                // Claimed at the same time, so in any order.
                seen.sort_unstable();
                let mut whole = whole.clone();
                whole.sort_unstable();
                assert_eq!(seen, whole, "{state} by {limit}");
            } else {
                assert_eq!(seen, whole, "{state} by {limit}");
            }
        }
    }
    Ok(())
}

pub(crate) async fn a_page_shows_whole_records(s: Stage<'_>) -> Outcome {
    for state in crate::stage::STATES {
        s.reach(state, task(state.as_str()).payload("p").header("h", "v").subject("doc", "1")).await?;
    }
    for state in State::ALL {
        let page = s.page(state, 10).await?;
        assert_eq!(page.tasks, [s.the(state.as_str()).await?], "{state}");
    }
    Ok(())
}

pub(crate) async fn a_limit_is_brought_within_one_and_a_thousand(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks((0..1_005).map(|n| format!("t{n}")))).await?;
    let page = s.page(State::Pending, 0).await?;
    assert_eq!((page.tasks.len(), page.next.is_some()), (1, true));
    let page = s.page(State::Pending, u32::MAX).await?;
    assert_eq!((page.tasks.len(), page.next.is_some()), (1_000, true));
    assert_eq!(read_on(&s, State::Pending, 1_000, page.next).await?.len(), 5);
    Ok(())
}

pub(crate) async fn a_cursor_of_another_list_is_refused(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["a", "b"])).await?;
    for id in ["c", "d"] {
        s.enqueue(task(id).after(60)).await?;
        s.enqueue(task(id).queue("other")).await?;
    }
    let cursor = s.page(State::Pending, 1).await?.next.expect("there is a second page");
    let ask = |queue_name: &str, state, after: &Cursor| {
        let request = PageRequest { queue: queue(queue_name), state, after: Some(after.clone()), limit: 1 };
        let broker = s.broker();
        async move { broker.page(request).await }
    };
    assert_eq!(ids(&ask(QUEUE, State::Pending, &cursor).await?.tasks), ["a"]);
    let bad = Err(Error::BadCursor { given: cursor.0.clone() });
    assert_eq!(ask("other", State::Pending, &cursor).await, bad);
    assert_eq!(ask("unknown", State::Pending, &cursor).await, bad);
    assert_eq!(ask(QUEUE, State::Scheduled, &cursor).await, bad);
    Ok(())
}

pub(crate) async fn what_is_no_cursor_is_refused(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["a", "b"])).await?;
    let real = s.page(State::Pending, 1).await?.next.expect("there is a second page").0;
    let cut = real.get(..real.len() / 2).unwrap_or_default().to_owned();
    for given in ["", "x", "1", "pending", "pending.", "....", "🔑", "\0", "-1", "' OR 1=1 --", &cut] {
        let request = PageRequest {
            queue: queue(QUEUE),
            state: State::Pending,
            after: Some(Cursor(given.into())),
            limit: 1,
        };
        assert_eq!(s.broker().page(request).await, Err(Error::BadCursor { given: given.into() }));
    }
    Ok(())
}

pub(crate) async fn what_comes_meanwhile_repeats_nothing(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["a", "b", "c", "d"])).await?;
    let (seen, next) = first_two(&s, State::Pending).await?;
    assert_eq!(seen, ["d", "c"]);
    s.enqueue_all(tasks(["e", "f"])).await?;
    assert_eq!(read_on(&s, State::Pending, 2, next).await?, ["b", "a"]);
    Ok(())
}

pub(crate) async fn what_goes_meanwhile_hides_nothing(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["a", "b", "c", "d", "e"])).await?;
    let (seen, next) = first_two(&s, State::Pending).await?;
    assert_eq!(seen, ["e", "d"]);
    // The cursor's own task, one that was shown, and one that was not.
    for id in ["d", "e", "b"] {
        s.broker().delete(key(QUEUE, id)).await?;
    }
    assert_eq!(read_on(&s, State::Pending, 1, next).await?, ["c", "a"]);
    Ok(())
}

pub(crate) async fn what_moves_meanwhile_is_not_shown_twice(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["a", "b", "c", "d", "e"])).await?;
    let (seen, next) = first_two(&s, State::Pending).await?;
    assert_eq!(seen, ["e", "d"]);
    // One goes round to the end, another there and back again.
    let taken = s.claim(5).await?;
    s.settle(&taken[0], retry(0)).await?;
    for back in &taken[1..] {
        s.settle(back, Settlement::Release).await?;
    }
    assert_eq!(read_on(&s, State::Pending, 2, next).await?, ["c", "b"]);
    Ok(())
}

pub(crate) async fn archived_tasks_that_change_meanwhile_are_not_shown_twice(s: Stage<'_>) -> Outcome {
    for id in ["a", "b", "c", "d"] {
        s.elapse(1).await;
        s.settled(task(id), crate::builders::archive()).await?;
    }
    let (seen, next) = first_two(&s, State::Archived).await?;
    assert_eq!(seen, ["d", "c"]);
    s.elapse(1).await;
    for id in ["c", "a"] {
        s.broker().run_now(key(QUEUE, id)).await?;
        let rerun = s.take().await?;
        s.settle(&rerun, crate::builders::archive()).await?;
    }
    assert_eq!(read_on(&s, State::Archived, 2, next).await?, ["b"]);
    Ok(())
}

pub(crate) async fn a_waiting_task_that_stays_is_shown_whatever_the_others_do(s: Stage<'_>) -> Outcome {
    for (id, after) in [("a", 100), ("b", 200), ("c", 300), ("d", 400)] {
        s.enqueue(task(id).after(after)).await?;
    }
    let (seen, next) = first_two(&s, State::Scheduled).await?;
    assert_eq!(seen, ["a", "b"]);
    s.enqueue(task("early").after(50)).await?;
    s.elapse(150).await;
    s.promote().await?;
    let taken = s.take().await?;
    s.settle(&taken, complete()).await?;
    assert_eq!(read_on(&s, State::Scheduled, 2, next).await?, ["c", "d"]);
    Ok(())
}

pub(crate) async fn a_page_that_ends_at_the_last_task_has_no_next(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["a", "b"])).await?;
    for limit in [2, 3] {
        let page = s.page(State::Pending, limit).await?;
        assert_eq!((page.tasks.len(), page.next), (2, None));
    }
    Ok(())
}
