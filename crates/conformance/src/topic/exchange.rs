//! Results out and tasks in, in one call: the same as one after the other.

use poolwright_broker::{Error, Settled};
use poolwright_core::State;

use crate::Outcome;
use crate::builders::{QUEUE, claim, complete, queue, retry, task, tasks};
use crate::stage::{Stage, held, ids, lease_lost, not_found};

fn claimed(answer: Result<poolwright_broker::ClaimReply, Error>) -> Result<Vec<String>, Error> {
    let tasks: Vec<_> = answer?.claims.into_iter().map(|claim| claim.task).collect();
    Ok(ids(&tasks))
}

pub(crate) async fn an_exchange_settles_and_claims(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["a", "b", "c", "d"])).await?;
    let first = s.claim(2).await?;
    s.elapse(3).await;
    let settlements = first.iter().map(|task| (held(task), complete())).collect();
    let answer = s.broker().exchange(settlements, claim(s.claim_id(), 2, &[QUEUE])).await?;
    assert_eq!(answer.outcomes, vec![Ok(Settled { state: None, at: s.now() }); 2]);
    assert_eq!(claimed(answer.claimed)?, ["c", "d"]);
    let stats = s.stats().await?;
    assert_eq!((stats.pending, stats.active, stats.processed), (0, 2, 2));
    Ok(())
}

pub(crate) async fn an_exchange_settles_before_it_claims(s: Stage<'_>) -> Outcome {
    let running = s.running(task("a")).await?;
    let request = claim(s.claim_id(), 2, &[QUEUE]);
    let answer = s.broker().exchange(vec![(held(&running), retry(0))], request).await?;
    assert_eq!(answer.outcomes[0].as_ref().map(|settled| settled.state), Ok(Some(State::Pending)));
    assert_eq!(claimed(answer.claimed)?, ["a"], "what was given back is there to be taken");
    assert_eq!(s.settle(&running, complete()).await, Err(lease_lost("a")), "under a token of its own");
    Ok(())
}

pub(crate) async fn an_outcome_of_an_exchange_fails_alone(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["a", "b", "c"])).await?;
    let taken = s.claim(2).await?;
    s.settle(&taken[0], complete()).await?;
    let settlements = taken.iter().map(|task| (held(task), complete())).collect();
    let answer = s.broker().exchange(settlements, claim(s.claim_id(), 1, &[QUEUE])).await?;
    let outcomes: Vec<_> = answer.outcomes.into_iter().map(|outcome| outcome.map(|it| it.state)).collect();
    assert_eq!(outcomes, [Err(not_found("a")), Ok(None)]);
    assert_eq!(claimed(answer.claimed)?, ["c"]);
    Ok(())
}

pub(crate) async fn an_exchange_whose_reply_was_lost_can_be_asked_again(s: Stage<'_>) -> Outcome {
    let running = s.running(task("a").retention(60)).await?;
    s.enqueue_all(tasks(["b", "c"])).await?;
    let (settlements, mut request) = (vec![(held(&running), complete())], claim(s.claim_id(), 1, &[QUEUE]));
    let first = s.broker().exchange(settlements.clone(), request.clone()).await?;
    request.resent = true;
    let again = s.broker().exchange(settlements, request).await?;
    assert_eq!(again.outcomes, [Err(not_found("a"))], "it is gone, as a settlement that comes again finds");
    assert_eq!(again.claimed?, first.claimed?, "the same task, token and lease");
    assert_eq!(s.stats().await?.pending, 1, "nothing new was claimed");
    Ok(())
}

pub(crate) async fn an_exchange_with_nothing_to_claim_settles(s: Stage<'_>) -> Outcome {
    let running = s.running(task("a")).await?;
    s.enqueue(task("b")).await?;
    s.broker().pause(queue(QUEUE), "no".into()).await?;
    let request = claim(s.claim_id(), 1, &[QUEUE, "unknown"]);
    let answer = s.broker().exchange(vec![(held(&running), complete())], request).await?;
    assert!(answer.outcomes[0].is_ok() && claimed(answer.claimed)?.is_empty());
    assert_eq!(s.find("a").await?, None);
    Ok(())
}
