//! Bulk actions: many tasks of one queue and state, in their order, so many at a time.

use poolwright_broker::{Bulk, BulkAction, Error};
use poolwright_core::{Class, State};

use crate::Outcome;
use crate::builders::{QUEUE, archive, keep, key, queue, task, tasks};
use crate::stage::{STATES, Stage, ids};

async fn bulk(s: &Stage<'_>, state: State, action: BulkAction, limit: u32) -> Result<u64, Error> {
    let bulk = Bulk { queue: queue(QUEUE), state, action, limit, reason: "in bulk".into() };
    s.broker().bulk(bulk).await
}

const ACTIONS: [BulkAction; 3] = [BulkAction::RunNow, BulkAction::Archive, BulkAction::Delete];

const fn allows(action: BulkAction, state: State) -> bool {
    match action {
        BulkAction::RunNow => {
            matches!(state, State::Scheduled | State::Retry | State::Archived | State::Completed)
        }
        BulkAction::Archive => matches!(state, State::Pending | State::Scheduled | State::Retry),
        BulkAction::Delete => !matches!(state, State::Active),
    }
}

pub(crate) async fn each_action_touches_the_states_it_is_for(s: Stage<'_>) -> Outcome {
    for action in ACTIONS {
        for state in STATES {
            for at in STATES {
                s.reach(at, task(at.as_str())).await?;
            }
            let expected = u64::from(allows(action, state));
            assert_eq!(bulk(&s, state, action, 10).await?, expected, "{action:?} of {state}");
            for at in STATES {
                let becomes = match (at == state && expected == 1, action) {
                    (false, _) => Some(at),
                    (true, BulkAction::RunNow) => Some(State::Pending),
                    (true, BulkAction::Archive) => Some(State::Archived),
                    (true, BulkAction::Delete) => None,
                };
                assert_eq!(s.state(at.as_str()).await?, becomes, "{action:?} of {state}");
            }
            let active = s.the("active").await?;
            s.settle(&active, crate::builders::complete()).await?;
            s.broker().remove_queue(queue(QUEUE), true).await?;
        }
    }
    Ok(())
}

pub(crate) async fn bulk_actions_do_what_the_single_ones_do(s: Stage<'_>) -> Outcome {
    s.reach(State::Retry, task("a")).await?;
    s.broker().request_cancel(vec![key(QUEUE, "a")]).await?;
    assert_eq!(bulk(&s, State::Retry, BulkAction::RunNow, 1).await?, 1);
    let seen = s.the("a").await?;
    assert_eq!((seen.retried, seen.cancel_requested, seen.token), (1, false, None));
    assert_eq!(bulk(&s, State::Pending, BulkAction::Archive, 1).await?, 1);
    let failed = s.the("a").await?.failed.expect("it was archived for a reason");
    assert_eq!((failed.class, &*failed.error), (Class::Operator, "in bulk"));
    assert!(s.the("a").await?.token.is_some());
    let unrecorded = s.broker().unrecorded(vec![queue(QUEUE)], 9).await?;
    assert_eq!(ids(&unrecorded), ["a"]);
    assert_eq!(s.stats().await?.processed, 1, "the retry, and nothing done by hand");
    Ok(())
}

pub(crate) async fn so_many_at_a_time_until_none_is_left(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["a", "b", "c", "d", "e"])).await?;
    assert_eq!(bulk(&s, State::Pending, BulkAction::Delete, 0).await?, 0);
    assert_eq!(bulk(&s, State::Pending, BulkAction::Delete, 2).await?, 2);
    assert_eq!(s.ids(State::Pending).await?, ["e", "d", "c"], "from the front of the queue");
    assert_eq!(bulk(&s, State::Pending, BulkAction::Delete, 2).await?, 2);
    assert_eq!(bulk(&s, State::Pending, BulkAction::Delete, 2).await?, 1);
    assert_eq!(bulk(&s, State::Pending, BulkAction::Delete, 2).await?, 0);
    Ok(())
}

pub(crate) async fn tasks_run_in_bulk_wait_in_the_order_of_their_times(s: Stage<'_>) -> Outcome {
    for (id, after) in [("c", 30), ("a", 10), ("b", 20), ("b2", 20)] {
        s.enqueue(task(id).after(after)).await?;
    }
    assert_eq!(bulk(&s, State::Scheduled, BulkAction::RunNow, 3).await?, 3);
    assert_eq!(ids(&s.claim(9).await?), ["a", "b", "b2"]);

    for (id, kept) in [("z", 100), ("x", 300), ("y", 200)] {
        s.elapse(1).await;
        s.settled(task(id), keep(kept, b"")).await?;
        s.settled(task(&format!("dead-{id}")), archive()).await?;
    }
    bulk(&s, State::Completed, BulkAction::RunNow, 9).await?;
    assert_eq!(ids(&s.claim(9).await?), ["z", "y", "x"], "by expiry");
    bulk(&s, State::Archived, BulkAction::RunNow, 9).await?;
    assert_eq!(ids(&s.claim(9).await?), ["dead-z", "dead-x", "dead-y"], "by failure");
    Ok(())
}

pub(crate) async fn other_queues_are_left_alone(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a").queue("other")).await?;
    assert_eq!(bulk(&s, State::Pending, BulkAction::Delete, 9).await?, 0);
    assert_eq!(s.stats_of("other").await?.pending, 1);
    assert_eq!(s.broker().queues().await?.len(), 1, "an unknown queue stays unknown");
    Ok(())
}
