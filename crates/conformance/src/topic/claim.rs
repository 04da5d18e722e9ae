//! Which task a claim takes, and what it makes of it.

use std::collections::BTreeSet;

use poolwright_broker::{Claim, Lottery};
use poolwright_core::{Settlement, State};

use crate::Outcome;
use crate::builders::{LEASE, QUEUE, claim, complete, demand, key, queue, secs, task, tasks};
use crate::observe::{assert_same, fresh};
use crate::stage::{Stage, held, ids};

pub(crate) async fn tasks_are_claimed_first_in_first_out(s: Stage<'_>) -> Outcome {
    for id in ["c", "a", "d", "b"] {
        s.enqueue(task(id)).await?;
    }
    assert_eq!(ids(&s.claim(3).await?), ["c", "a", "d"]);
    s.enqueue(task("e")).await?;
    assert_eq!(ids(&s.claim(3).await?), ["b", "e"]);
    Ok(())
}

pub(crate) async fn a_claimed_task_has_a_token_and_a_lease(s: Stage<'_>) -> Outcome {
    let given = task("a").payload("p").subject("doc", "1").build();
    s.enqueue(given.clone()).await?;
    let mut expected = fresh(&given, s.now());
    s.elapse(5).await;
    let taken = s.take().await?;
    assert!(taken.token.is_some());
    expected.state = State::Active;
    expected.pending_since = None;
    expected.started_at = Some(s.now());
    expected.lease_until = Some(s.now() + LEASE);
    expected.token = taken.token;
    assert_same(&taken, &expected);
    assert_eq!(s.the("a").await?, taken, "what was claimed is what is stored");
    Ok(())
}

pub(crate) async fn a_claim_never_takes_more_than_its_slots(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks((0..10).map(|n| format!("t{n}")))).await?;
    assert!(s.claim(0).await?.is_empty());
    assert_eq!(s.claim(3).await?.len(), 3);
    assert_eq!(s.claim(u32::MAX).await?.len(), 7);
    assert!(s.claim(5).await?.is_empty());
    Ok(())
}

pub(crate) async fn every_claim_makes_a_token_of_its_own(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks((0..20).map(|n| format!("t{n}")))).await?;
    let mut tokens = BTreeSet::new();
    for _ in 0..5 {
        for task in s.claim(20).await? {
            assert!(tokens.insert(task.token), "a token was made twice");
            s.settle(&task, Settlement::Release).await?;
        }
    }
    assert_eq!(tokens.len(), 100);
    Ok(())
}

pub(crate) async fn paused_queues_are_passed_over(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a").queue("x")).await?;
    s.enqueue(task("b").queue("y")).await?;
    s.broker().pause(queue("x"), "no".into()).await?;
    assert_eq!(ids(&s.claim_from(5, &["x", "y"]).await?), ["b"]);
    s.broker().resume(queue("x")).await?;
    assert_eq!(ids(&s.claim_from(5, &["x", "y"]).await?), ["a"]);
    Ok(())
}

pub(crate) async fn pause_stops_claims_and_nothing_else(s: Stage<'_>) -> Outcome {
    let running = s.running(task("a")).await?;
    s.broker().pause(queue(QUEUE), "no".into()).await?;
    s.enqueue(task("b")).await?;
    s.extend(&running, LEASE).await?;
    s.broker().progress(held(&running), 0.5, "half".into()).await?;
    s.broker().store_result(held(&running), "r".into()).await?;
    assert_eq!(s.settle(&running, complete()).await?.state, None);
    assert!(s.claim(1).await?.is_empty());
    assert_eq!(s.stats().await?.pending, 1);
    Ok(())
}

pub(crate) async fn each_slot_goes_to_the_queue_that_the_lottery_draws(s: Stage<'_>) -> Outcome {
    let weights = [("x", 6), ("y", 3), ("z", 1)];
    for (name, _) in weights {
        s.enqueue_all((0..12).map(|n| task(&format!("{name}{n}")).queue(name).build()).collect()).await?;
    }
    let mut left = [12, 12, 12];
    let mut expected = Vec::new();
    let mut lottery = Lottery::new(77, weights.map(|(_, weight)| weight));
    for _ in 0..30 {
        let at = *lottery.draw().iter().find(|&&at| left[at] > 0).expect("30 of 36 are asked for");
        expected.push(format!("{}{}", weights[at].0, 12 - left[at]));
        left[at] -= 1;
    }
    let mut request = claim(s.claim_id(), 0, &[]);
    request.demands = vec![demand("pool", 30, &weights, 77)];
    assert_eq!(ids(&s.claim_as(request).await?), expected);
    Ok(())
}

pub(crate) async fn an_empty_queue_of_any_weight_blocks_no_other(s: Stage<'_>) -> Outcome {
    s.enqueue_all((0..5).map(|n| task(&n.to_string()).queue("low").build()).collect()).await?;
    s.enqueue(task("gone").queue("high")).await?;
    s.broker().delete(key("high", "gone")).await?;
    let mut request = claim(s.claim_id(), 0, &[]);
    request.demands = vec![demand("pool", 5, &[("high", u32::MAX), ("unknown", u32::MAX), ("low", 1)], 3)];
    assert_eq!(ids(&s.claim_as(request).await?), ["0", "1", "2", "3", "4"]);
    Ok(())
}

pub(crate) async fn pools_of_one_claim_are_served_in_their_order(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["a", "b", "c", "d"])).await?;
    s.enqueue(task("e").queue("other")).await?;
    let mut request = claim(s.claim_id(), 0, &[]);
    request.demands = vec![
        demand("first", 2, &[(QUEUE, 1)], 1),
        demand("idle", 0, &[(QUEUE, 1)], 1),
        demand("none", 4, &[], 1),
        demand("second", 9, &[("other", 1)], 1),
        demand("third", 1, &[(QUEUE, 1), ("other", 1)], 1),
    ];
    let reply = s.broker().claim(request).await?;
    let seen: Vec<_> =
        reply.claims.iter().map(|claim| (claim.pool.as_str(), claim.task.key.id.as_str())).collect();
    assert_eq!(seen, [("first", "a"), ("first", "b"), ("second", "e"), ("third", "c")]);
    Ok(())
}

pub(crate) async fn a_resent_claim_gets_the_same_tasks_again(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["a", "b", "c"])).await?;
    s.enqueue(task("d").queue("other")).await?;
    let mut request = claim(s.claim_id(), 0, &[]);
    request.demands = vec![demand("second", 1, &[("other", 1)], 1), demand("first", 2, &[(QUEUE, 1)], 1)];
    let first = s.broker().claim(request.clone()).await?;
    s.elapse(5).await;
    request.resent = true;
    let again = s.broker().claim(request.clone()).await?;
    assert_eq!(again, first, "the same tasks, pools, tokens and leases");
    assert_eq!(s.stats().await?.pending, 1, "nothing new was claimed");

    // What was settled meanwhile is not returned, what is left is.
    s.settle(&first.claims[1].task, complete()).await?;
    let left = s.broker().claim(request.clone()).await?;
    assert_eq!(left.claims, [first.claims[0].clone(), first.claims[2].clone()]);
    Ok(())
}

pub(crate) async fn a_resent_claim_gets_its_tasks_by_demand_and_queue(s: Stage<'_>) -> Outcome {
    let weights = [("x", 1), ("y", 1), ("z", 1)];
    for (name, _) in weights {
        s.enqueue_all((0..9).map(|n| task(&n.to_string()).queue(name).build()).collect()).await?;
        // So that nothing in one queue lines up with the others.
        s.claim_from(u32::try_from(name.len())?, &[name]).await?;
    }
    s.claim_from(2, &["y"]).await?;
    let mut request = claim(s.claim_id(), 0, &[]);
    request.demands = vec![demand("first", 9, &weights, 4), demand("second", 5, &weights, 5)];
    let mut expected = s.broker().claim(request.clone()).await?;
    request.resent = true;
    let place = |claim: &Claim| {
        let named = |drawn: &(&str, u32)| claim.task.key.queue == *drawn.0;
        (claim.pool.clone(), weights.iter().position(named))
    };
    assert!(!expected.claims.is_sorted_by_key(place), "the lottery mixed the queues");
    // Stable: within a queue the order is that of the first reply.
    expected.claims.sort_by_key(place);
    assert_eq!(s.broker().claim(request).await?, expected);
    Ok(())
}

pub(crate) async fn a_resent_claim_that_finds_nothing_claims_anew(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["a", "b"])).await?;
    let mut request = claim(s.claim_id(), 1, &[QUEUE]);
    request.resent = true;
    let first = s.claim_as(request.clone()).await?;
    assert_eq!(ids(&first), ["a"], "the first request had never arrived");
    s.settle(&first[0], complete()).await?;
    assert_eq!(ids(&s.claim_as(request).await?), ["b"]);
    Ok(())
}

pub(crate) async fn a_claim_that_is_not_resent_takes_new_tasks_under_the_same_id(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["a", "b"])).await?;
    let request = claim(s.claim_id(), 1, &[QUEUE]);
    assert_eq!(ids(&s.claim_as(request.clone()).await?), ["a"]);
    assert_eq!(ids(&s.claim_as(request).await?), ["b"]);
    Ok(())
}

pub(crate) async fn a_resent_claim_does_not_get_what_another_took_over(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["a", "b"])).await?;
    let mut request = claim(s.claim_id(), 1, &[QUEUE]);
    s.claim_as(request.clone()).await?;
    s.elapse(60).await;
    assert_eq!(s.take_over().await?.len(), 1);
    request.resent = true;
    assert_eq!(ids(&s.claim_as(request).await?), ["b"]);
    Ok(())
}

pub(crate) async fn a_new_attempt_forgets_progress_and_keeps_the_result(s: Stage<'_>) -> Outcome {
    let first = s.running(task("a")).await?;
    s.broker().progress(held(&first), 0.25, "parsed".into()).await?;
    s.broker().store_result(held(&first), "half".into()).await?;
    s.settle(&first, Settlement::Release).await?;
    assert!(s.the("a").await?.progress.is_some(), "the record shows it until the next claim");
    let second = s.take().await?;
    assert_eq!((second.progress, second.result), (None, Some("half".into())));
    Ok(())
}

pub(crate) async fn a_task_past_its_deadline_is_claimed_for_the_judge(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a").deadline(s.now() - secs(1))).await?;
    assert_eq!(ids(&s.claim(1).await?), ["a"]);
    Ok(())
}
