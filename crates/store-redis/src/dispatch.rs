//! [`Dispatch`]: leases and settlements; what is handed out is in `claim`.

use std::fmt::Display;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use poolwright_broker::{
    ClaimReply, ClaimRequest, Dispatch, Error, Exchanged, Extension, Held, Reply, Settled,
};
use poolwright_core::text::error_text;
use poolwright_core::{Charge, Settlement, TaskKey};

use crate::RedisStore;
use crate::held::Running;
use crate::keys::Keys;
use crate::link::Kind;
use crate::notes::member;
use crate::record::score_of;
use crate::reply::Parts;
use crate::script::{Call, EXTEND, NOTE, SETTLE};
use crate::shared::lease_of;
use crate::store::Batch;
use crate::submit::{micros, state};

type Outcomes = Vec<Result<Settled, Error>>;

impl Dispatch for RedisStore {
    fn claim(&self, request: ClaimRequest) -> Reply<'_, ClaimReply> {
        Box::pin(self.claim_for(request))
    }

    fn extend(&self, held: Vec<Held>, lease: Duration) -> Reply<'_, Vec<Extension>> {
        Box::pin(async move {
            let mut answers = vec![Extension::Lost; held.len()];
            let batches = self.batches(held.into_iter().map(|held| (held.key.queue.clone(), held)));
            let batches: Vec<_> = batches.into_iter().map(|batch| self.with_leases(batch, lease)).collect();
            let calls =
                batches.iter().map(|(batch, leases)| self.run(self.extend_call(batch, leases), Kind::Write));
            for ((batch, leases), parts) in batches.iter().zip(join_all(calls).await) {
                let mut parts = parts?;
                for (at, number, held) in &batch.items {
                    let until = parts.at + leases[*number - 1];
                    answers[*at] = match parts.text()?.as_str() {
                        "kept" => {
                            self.held.extended(&held.key, until);
                            Extension::Kept(until)
                        }
                        "cancelled" => {
                            self.held.extended(&held.key, until);
                            Extension::Cancelled(until)
                        }
                        _ => {
                            self.held.remove(&held.key);
                            Extension::Lost
                        }
                    };
                }
            }
            Ok(answers)
        })
    }

    fn settle(&self, settlements: Vec<(Held, Settlement)>) -> Reply<'_, Outcomes> {
        Box::pin(async move {
            let mut outcomes: Vec<Option<_>> = settlements.iter().map(|_| None).collect();
            let batches = self.batches(settlements.into_iter().map(|one| (one.0.key.queue.clone(), one)));
            for (batch, parts) in self.run_all(batches, Kind::Write, |batch| self.settle_call(batch)).await? {
                self.settled(&batch, parts, &mut outcomes)?;
            }
            Ok(whole(outcomes))
        })
    }

    fn exchange(&self, settlements: Vec<(Held, Settlement)>, claim: ClaimRequest) -> Reply<'_, Exchanged> {
        Box::pin(async move {
            let claims =
                if self.link.is_cluster() || settlements.is_empty() { None } else { self.plan(&claim) };
            let Some(mut plan) = claims else {
                let outcomes = self.settle(settlements).await?;
                return Ok(Exchanged { outcomes, claimed: self.claim(claim).await });
            };
            let mut outcomes: Vec<Option<_>> = settlements.iter().map(|_| None).collect();
            let batch =
                self.batches(settlements.into_iter().map(|one| (one.0.key.queue.clone(), one))).remove(0);
            let (first, second) = (self.settle_call(&batch), plan.call(self));
            let [settled, claimed] = self.run_both(first, second, Kind::Write).await?;
            self.settled(&batch, settled, &mut outcomes)?;
            let claimed = self.claimed(&claim, plan, claimed).await;
            Ok(Exchanged { outcomes: whole(outcomes), claimed })
        })
    }

    fn store_result(&self, held: Held, result: Bytes) -> Reply<'_, ()> {
        Box::pin(self.note(held, "result", result))
    }

    fn progress(&self, held: Held, done: f64, note: String) -> Reply<'_, ()> {
        let done = if done.is_nan() { 0.0 } else { done.clamp(0.0, 1.0) };
        Box::pin(self.note(held, "progress", format!("{done} {}", error_text(&note)).into()))
    }
}

fn whole<T>(outcomes: Vec<Option<T>>) -> Vec<T> {
    outcomes.into_iter().map(|outcome| outcome.expect("each is in one batch")).collect()
}

impl RedisStore {
    /// How long a lease lasts on each queue of a batch.
    fn with_leases(&self, batch: Batch<Held>, lease: Duration) -> (Batch<Held>, Vec<Duration>) {
        let shared = self.shared.among(&batch.queues);
        let leases = shared.into_iter().map(|shared| lease_of(lease, shared)).collect();
        (batch, leases)
    }

    fn extend_call(&self, batch: &Batch<Held>, leases: &[Duration]) -> Call {
        let mut call = self.call_for(&EXTEND, batch);
        for lease in leases {
            call.number(micros(*lease));
        }
        for (_, number, held) in &batch.items {
            write_held(&mut call, number, held);
        }
        call
    }

    fn settle_call(&self, batch: &Batch<(Held, Settlement)>) -> Call {
        let mut call = self.call_for(&SETTLE, batch);
        for (_, number, (held, settlement)) in &batch.items {
            match self.done_with(held, settlement) {
                Some(task) => write_done(&mut call, *number, held, &task),
                None => {
                    write_held(&mut call, format_args!("{number}+"), held);
                    write_settlement(&mut call, settlement);
                }
            }
        }
        call
    }

    /// What is known of a task that ends without a trace; none when more has to be done than to take it away.
    fn done_with(&self, held: &Held, settlement: &Settlement) -> Option<Running> {
        let is_done = matches!(settlement, Settlement::Complete { retain_for: Duration::ZERO, .. });
        self.held.get(&held.key).filter(|task| is_done && !task.is_locked)
    }

    fn settled(
        &self,
        batch: &Batch<(Held, Settlement)>,
        mut parts: Parts,
        outcomes: &mut [Option<Result<Settled, Error>>],
    ) -> Result<(), Error> {
        let at = parts.at;
        for (place, _, (held, _)) in &batch.items {
            let key = held.key.clone();
            self.held.remove(&key);
            outcomes[*place] = Some(match parts.text()?.as_str() {
                "gone" => Ok(Settled { state: None, at }),
                "lost" => Err(Error::LeaseLost { key }),
                "missing" => Err(Error::NotFound { key }),
                word => Ok(Settled { state: Some(state(word)?), at }),
            });
        }
        self.wake(&batch.queues, parts.list()?)
    }

    async fn note(&self, held: Held, what: &'static str, bytes: Bytes) -> Result<(), Error> {
        let keys = Keys::of(&held.key.queue);
        let mut call = self.call(&NOTE);
        call.key(keys.pending()).arg(keys.prefix().to_owned());
        call.arg(held.key.id.as_str().to_owned()).arg(token(&held)).arg(what).arg(bytes);
        let answer = self.run(call, Kind::Write).await?.text()?;
        noted(&answer, held.key)
    }
}

fn noted(answer: &str, key: TaskKey) -> Result<(), Error> {
    match answer {
        "noted" => Ok(()),
        "missing" => Err(Error::NotFound { key }),
        _ => Err(Error::LeaseLost { key }),
    }
}

fn token(held: &Held) -> Bytes {
    Bytes::copy_from_slice(&held.token.to_bytes())
}

/// Number of its queue, and behind it what kind of settlement follows if one does; id, token.
pub(crate) fn write_held(call: &mut Call, number: impl Display, held: &Held) {
    call.arg(number.to_string());
    call.arg(held.key.id.as_str().to_owned()).arg(token(held));
}

/// The score of its lease, and where it is in the index.
fn write_done(call: &mut Call, number: usize, held: &Held, task: &Running) {
    let score = score_of(task.lease_until);
    if task.entries.is_empty() {
        write_held(call, number, held);
        call.arg(score.to_string());
    } else {
        write_held(call, format_args!("{number}i"), held);
        call.arg(score.to_string()).arg(member(held.key.id.as_str())).arg(task.entries.clone());
    }
}

/// What, microseconds, text, class, charge, result, whether there is one.
fn write_settlement(call: &mut Call, settlement: &Settlement) {
    let (what, time) = match settlement {
        Settlement::Complete { retain_for, .. } => ("complete", *retain_for),
        Settlement::Retry { after, .. } => ("retry", *after),
        Settlement::Archive { .. } => ("archive", Duration::ZERO),
        Settlement::Discard => ("discard", Duration::ZERO),
        Settlement::Release => ("release", Duration::ZERO),
        Settlement::Hold { .. } => ("hold", Duration::ZERO),
    };
    let (text, class) = match settlement {
        Settlement::Retry { error, class, .. } | Settlement::Archive { error, class } => {
            (error_text(error), class.as_str())
        }
        Settlement::Hold { reason } => (error_text(reason), ""),
        _ => (String::new(), ""),
    };
    let charge = match settlement {
        Settlement::Retry { charge: Charge::Retry, .. } => "retry",
        Settlement::Retry { charge: Charge::Deferral, .. } => "deferral",
        Settlement::Retry { charge: Charge::Crash, .. } => "crash",
        _ => "nothing",
    };
    let result = match settlement {
        Settlement::Complete { result, .. } => result.clone(),
        _ => None,
    };
    call.arg(what).number(micros(time)).arg(text).arg(class).arg(charge);
    call.arg(result.clone().unwrap_or_default()).flag(result.is_some());
}
