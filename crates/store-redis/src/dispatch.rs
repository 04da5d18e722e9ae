//! [`Dispatch`]: leases and settlements; what is handed out is in `claim`.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use poolwright_broker::{
    ClaimReply, ClaimRequest, Dispatch, Error, Exchanged, Extension, Held, Reply, Settled,
};
use poolwright_core::text::error_text;
use poolwright_core::{Settlement, TaskKey};

use crate::RedisStore;
use crate::keys::Keys;
use crate::link::{CallError, Kind};
use crate::script::{Call, EXCHANGE, EXTEND, NOTE};
use crate::shared::lease_of;
use crate::store::Batch;
use crate::submit::micros;

/// The most settlements of one script: a server does nothing else meanwhile.
const SETTLE_MAX: usize = 512;

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
                            self.held.remove(held);
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
            let mut left = settlements.into_iter().enumerate();
            loop {
                let some: Vec<_> = left.by_ref().take(SETTLE_MAX).collect();
                if some.is_empty() {
                    return Ok(whole(outcomes));
                }
                self.settle_some(some, &mut outcomes).await?;
            }
        })
    }

    fn exchange(&self, settlements: Vec<(Held, Settlement)>, claim: ClaimRequest) -> Reply<'_, Exchanged> {
        Box::pin(async move {
            let claims = if self.link.is_cluster() || settlements.is_empty() || settlements.len() > SETTLE_MAX
            {
                None
            } else {
                self.plan(&claim)
            };
            let Some(mut plan) = claims else {
                let outcomes = self.settle(settlements).await?;
                return Ok(Exchanged { outcomes, claimed: self.claim(claim).await });
            };
            let mut outcomes: Vec<Option<_>> = settlements.iter().map(|_| None).collect();
            let batch =
                self.batches(settlements.into_iter().map(|one| (one.0.key.queue.clone(), one))).remove(0);
            let settling = self.settling(batch);
            let call = Call::both(&EXCHANGE, settling.call(self), plan.call(self));
            let mut parts = self.run(call, Kind::Write).await?;
            let said = |error| Error::from(CallError::said(self.link.describe(), &error));
            let settled = parts.timed_or_error()?.map_err(said);
            if let Err(error) = settled.and_then(|settled| self.settled(settling, settled, &mut outcomes)) {
                // Those that were not told.
                for outcome in outcomes.iter_mut().filter(|outcome| outcome.is_none()) {
                    *outcome = Some(Err(error.clone()));
                }
            }
            // Its tasks must not be left to nobody, whatever became of the settlements.
            let claimed = match parts.timed_or_error()?.map_err(said) {
                Ok(claimed) => self.claimed(&claim, plan, claimed).await,
                Err(error) => Err(error),
            };
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
    /// Settles those of one call; each comes with its place among the outcomes.
    async fn settle_some(
        &self,
        some: Vec<(usize, (Held, Settlement))>,
        outcomes: &mut [Option<Result<Settled, Error>>],
    ) -> Result<(), Error> {
        let places: Vec<usize> = some.iter().map(|(place, _)| *place).collect();
        let batches = self.batches(some.into_iter().map(|(_, one)| (one.0.key.queue.clone(), one)));
        let calls = batches.into_iter().map(|batch| async {
            let settling = self.settling(batch);
            let parts = self.run(settling.call(self), Kind::Write).await?;
            Ok::<_, Error>((settling, parts))
        });
        let mut settled: Vec<Option<_>> = places.iter().map(|_| None).collect();
        for done in join_all(calls).await {
            let (settling, parts) = done?;
            self.settled(settling, parts, &mut settled)?;
        }
        for (place, outcome) in places.into_iter().zip(settled) {
            outcomes[place] = outcome;
        }
        Ok(())
    }

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
            write_held(&mut call, *number, held);
        }
        call
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

pub(crate) fn token(held: &Held) -> Bytes {
    Bytes::copy_from_slice(&held.token.to_bytes())
}

/// Number of its queue, id, token.
pub(crate) fn write_held(call: &mut Call, number: usize, held: &Held) {
    call.number(i128::try_from(number).unwrap_or(0));
    call.arg(held.key.id.as_str().to_owned()).arg(token(held));
}
