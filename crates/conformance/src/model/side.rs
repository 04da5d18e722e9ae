//! One of the two stores: plays steps, and keeps the proofs that it handed out.

use std::sync::Arc;

use poolwright_broker::{
    Broker, ClaimReply, ClaimRequest, Enqueued, Error, Exchanged, Held, PoolBeat, Reply, ServerBeat,
    ServerId, WeightedQueue,
};
use poolwright_core::{PoolName, Settlement, TaskRecord, Timestamp};

use super::step::Step;
use crate::Harness;
use crate::builders::queue;
use crate::observe::without_token;

/// How many attempts are remembered; older ones are as stale as these will be.
const ATTEMPTS_MAX: usize = 40;

/// What a store said to a step, part by part, without what may differ.
type Said = Vec<String>;

/// One of the two stores.
pub(super) struct Side<'h> {
    harness: &'h dyn Harness,
    /// Every attempt handed out, as far as remembered. Both sides list them in the same order.
    attempts: Vec<Held>,
    /// The unrecorded ends that were seen last.
    pub(super) letters: Vec<Held>,
    last_claim: Option<ClaimRequest>,
}

impl<'h> Side<'h> {
    pub(super) fn new(harness: &'h dyn Harness) -> Self {
        Self { harness, attempts: Vec::new(), letters: Vec::new(), last_claim: None }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.harness.now()
    }

    pub(super) fn broker(&self) -> Arc<dyn Broker> {
        self.harness.broker()
    }

    pub(super) fn attempts(&self) -> usize {
        self.attempts.len()
    }

    pub(super) fn last_claim(&self) -> Option<&ClaimRequest> {
        self.last_claim.as_ref()
    }

    /// Plays a step; gives what the store said.
    pub(super) async fn play(&mut self, step: &Step) -> String {
        let said = match step {
            Step::Enqueue(_)
            | Step::Claim(_)
            | Step::Extend(..)
            | Step::Settle(_)
            | Step::Exchange(..)
            | Step::StoreResult(..)
            | Step::Progress(..) => self.dispatch(step).await,
            Step::Elapse(_)
            | Step::Promote(..)
            | Step::TakeOver(_)
            | Step::Sweep(_)
            | Step::Reconcile
            | Step::MarkRecorded(_)
            | Step::MarkAttempt(_)
            | Step::Beat(..)
            | Step::Retire(_) => self.keep(step).await,
            _ => self.act(step).await,
        };
        said.join("\n")
    }

    async fn dispatch(&mut self, step: &Step) -> Said {
        let broker = self.broker();
        match step {
            Step::Enqueue(tasks) => each(broker.enqueue(tasks.clone()).await, outcome::<Enqueued>),
            Step::Claim(request) => {
                let answer = broker.claim(request.clone()).await;
                self.claimed(request, answer)
            }
            Step::Extend(attempts, lease) => {
                let held = attempts.iter().map(|&at| self.attempts[at].clone()).collect();
                each(broker.extend(held, *lease).await, |extension| format!("{extension:?}"))
            }
            Step::Settle(batch) => each(broker.settle(self.settlements(batch)).await, outcome),
            Step::Exchange(batch, request) => {
                match broker.exchange(self.settlements(batch), request.clone()).await {
                    Ok(Exchanged { outcomes, claimed }) => {
                        let mut said = each(Ok(outcomes), outcome);
                        said.extend(self.claimed(request, claimed));
                        said
                    }
                    Err(error) => vec![plain(&error)],
                }
            }
            Step::StoreResult(at, result) => {
                one(broker.store_result(self.attempts[*at].clone(), result.clone())).await
            }
            Step::Progress(at, done, note) => {
                one(broker.progress(self.attempts[*at].clone(), *done, note.clone())).await
            }
            other => unreachable!("{other:?} is no step of dispatch"),
        }
    }

    fn settlements(&self, batch: &[(usize, Settlement)]) -> Vec<(Held, Settlement)> {
        batch.iter().map(|(at, settlement)| (self.attempts[*at].clone(), settlement.clone())).collect()
    }

    fn claimed(&mut self, request: &ClaimRequest, answer: Result<ClaimReply, Error>) -> Said {
        self.last_claim = Some(request.clone());
        let reply = match answer {
            Ok(reply) => reply,
            Err(error) => return vec![plain(&error)],
        };
        let mut said = vec![format!("{} discarded", reply.discarded)];
        for claim in reply.claims {
            said.push(format!("for {}: {}", claim.pool, self.handed_out(claim.task)));
        }
        said
    }

    async fn keep(&mut self, step: &Step) -> Said {
        let broker = self.broker();
        match step {
            Step::Elapse(by) => {
                self.harness.elapse(*by).await;
                vec![self.now().to_string()]
            }
            Step::Promote(queues, limit) => one(broker.promote_due(queues.clone(), *limit)).await,
            Step::TakeOver(request) => match broker.take_over(request.clone()).await {
                Ok(mut tasks) => {
                    // Stable: within a queue the order is part of the contract.
                    tasks.sort_by(|a, b| a.key.queue.cmp(&b.key.queue));
                    tasks.into_iter().map(|task| self.handed_out(task)).collect()
                }
                Err(error) => vec![plain(&error)],
            },
            Step::Sweep(limits) => one(broker.sweep(limits.clone())).await,
            Step::Reconcile => {
                // What it mends differs: a store may tidy away what another never writes.
                let mended = broker.reconcile(crate::builders::queues(&super::dice::QUEUES)).await;
                vec![mended.map_or_else(|error| plain(&error), |_| "mended".to_owned())]
            }
            Step::MarkRecorded(count) => {
                let first = self.letters.iter().take(*count).cloned().collect();
                one(broker.mark_recorded(first)).await
            }
            Step::MarkAttempt(at) => one(broker.mark_recorded(vec![self.attempts[*at].clone()])).await,
            Step::Beat(id, lasts) => one(broker.beat(beat(id), *lasts)).await,
            Step::Retire(id) => one(broker.retire(ServerId((*id).to_owned()))).await,
            other => unreachable!("{other:?} is no step of upkeep"),
        }
    }

    async fn act(&self, step: &Step) -> Said {
        let broker = self.broker();
        match step {
            Step::Get(key) => {
                let found = broker.get(key.clone()).await;
                vec![outcome(found.map(|task| task.map(without_token)))]
            }
            Step::RequestCancel(keys) => {
                each(broker.request_cancel(keys.clone()).await, |met| format!("{met:?}"))
            }
            Step::RunNow(key) => one(broker.run_now(key.clone())).await,
            Step::Archive(key, reason) => one(broker.archive(key.clone(), reason.clone())).await,
            Step::Delete(key) => one(broker.delete(key.clone())).await,
            Step::Bulk(bulk) => one(broker.bulk(bulk.clone())).await,
            Step::Reschedule(key, when) => one(broker.reschedule(key.clone(), *when)).await,
            Step::UpdatePayload(key, payload) => {
                one(broker.update_payload(key.clone(), payload.clone())).await
            }
            Step::Pause(queue, reason) => one(broker.pause(queue.clone(), reason.clone())).await,
            Step::Resume(queue) => one(broker.resume(queue.clone())).await,
            Step::RemoveQueue(queue, force) => one(broker.remove_queue(queue.clone(), *force)).await,
            other => unreachable!("{other:?} is done by no operator"),
        }
    }

    /// Remembers the proof of a task that was handed out; gives its text.
    fn handed_out(&mut self, task: TaskRecord) -> String {
        if self.attempts.len() == ATTEMPTS_MAX {
            self.attempts.remove(0);
        }
        self.attempts.extend(Held::of(&task));
        format!("{:#?}", without_token(task))
    }
}

fn beat(id: &str) -> ServerBeat {
    let pool = PoolBeat {
        pool: PoolName::new("core").expect("is a name"),
        workers: 4,
        busy: 1,
        stalled: 0,
        queues: vec![WeightedQueue { queue: queue("x"), weight: 3 }],
    };
    ServerBeat {
        id: ServerId(id.to_owned()),
        host: "h".to_owned(),
        pid: 1,
        started_at: Timestamp::EPOCH,
        beat_at: Timestamp::EPOCH,
        stopping: false,
        pools: vec![pool],
        tasks: Vec::new(),
    }
}

/// The text of an error, without the words that each store chooses for itself.
fn plain(error: &Error) -> String {
    match error {
        Error::WrongState { key, state, .. } => format!("wrong state: {key} is {state}"),
        Error::Refused { .. } => "refused".to_owned(),
        Error::Unavailable { .. } => "unavailable".to_owned(),
        other => format!("{other:?}"),
    }
}

fn outcome<T: std::fmt::Debug>(outcome: Result<T, Error>) -> String {
    outcome.map_or_else(|error| plain(&error), |value| format!("{value:#?}"))
}

fn each<T>(answer: Result<Vec<T>, Error>, text: impl Fn(T) -> String) -> Said {
    match answer {
        Ok(parts) => parts.into_iter().map(text).collect(),
        Err(error) => vec![plain(&error)],
    }
}

async fn one<T: std::fmt::Debug>(call: Reply<'_, T>) -> Said {
    vec![outcome(call.await)]
}
