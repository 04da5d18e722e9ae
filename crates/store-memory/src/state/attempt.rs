//! An attempt from its claim to its settlement.
//!
//! Invariant: after the claim, everything is checked against the token first.

use std::time::Duration;

use bytes::Bytes;
use poolwright_broker::{Claim, ClaimId, Error, Extension};
use poolwright_core::task::Progress;
use poolwright_core::text::error_text;
use poolwright_core::{
    Chance, Charge, Class, PoolName, Settlement, State, TaskId, TaskRecord, Timestamp, Token, When,
};

use super::entry::Entry;
use super::queue::Queue;

/// Who takes a task, and on which terms.
#[derive(Debug)]
pub(crate) struct Claimant<'a> {
    pub(crate) claim: ClaimId,
    pub(crate) pool: &'a PoolName,
    pub(crate) lease: Duration,
    pub(crate) chance: &'a Chance,
}

impl Queue {
    /// The task at the front becomes active, at this place among the active ones. Flagged ones before it are discarded and
    /// counted in `discarded`.
    pub(crate) fn claim(
        &mut self,
        by: &Claimant<'_>,
        turn: i64,
        now: Timestamp,
        discarded: &mut u32,
    ) -> Option<TaskRecord> {
        if self.paused.is_some() {
            return None;
        }
        loop {
            let id = self.first(State::Pending)?;
            let mut entry = self.lift(&id).expect("what lies on a shelf is stored");
            if entry.record.cancel_requested {
                self.end_gone(entry, now);
                *discarded += 1;
                continue;
            }
            entry.start(turn, now);
            entry.lease(Token::fresh(by.chance), now + by.lease);
            entry.claimed = Some((by.claim, by.pool.clone()));
            let record = entry.record.clone();
            self.put(entry);
            return Some(record);
        }
    }

    /// What is still active under a claim, with the places that tell the order in which it was taken.
    pub(crate) fn claimed_under(&self, claim: ClaimId) -> Vec<(i64, Claim)> {
        let active = self.shelf(State::Active).iter().filter_map(|(turn, id)| {
            let entry = &self.tasks[id];
            let (_, pool) = entry.claimed.as_ref().filter(|(under, _)| *under == claim)?;
            Some((*turn, Claim { pool: pool.clone(), task: entry.record.clone() }))
        });
        active.collect()
    }

    /// Makes a lease last so long from now.
    pub(crate) fn extend(&mut self, id: &TaskId, token: Token, until: Timestamp) -> Extension {
        if self.check_holder(id, token).is_err() {
            return Extension::Lost;
        }
        let mut entry = self.lift(id).expect("its holder was just checked");
        entry.record.lease_until = Some(until);
        let cancelled = entry.record.cancel_requested;
        self.put(entry);
        if cancelled { Extension::Cancelled(until) } else { Extension::Kept(until) }
    }

    /// Keeps a result with the running task.
    pub(crate) fn store_result(&mut self, id: &TaskId, token: Token, result: Bytes) -> Result<(), Error> {
        self.running(id, token)?.result = Some(result);
        Ok(())
    }

    /// Notes how far the running task is.
    pub(crate) fn progress(
        &mut self,
        id: &TaskId,
        token: Token,
        done: f64,
        note: &str,
        now: Timestamp,
    ) -> Result<(), Error> {
        let done = if done.is_nan() { 0.0 } else { done.clamp(0.0, 1.0) };
        self.running(id, token)?.progress = Some(Progress { done, note: error_text(note), at: now });
        Ok(())
    }

    /// Settles an attempt: gives the state in which it ended, none when it is gone.
    pub(crate) fn settle(
        &mut self,
        id: &TaskId,
        token: Token,
        settlement: Settlement,
        now: Timestamp,
    ) -> Result<Option<State>, Error> {
        if let Some(state) = self.settled_before(id, token) {
            return Ok(Some(state));
        }
        self.check_holder(id, token)?;
        let entry = self.lift(id).expect("its holder was just checked");
        match &settlement {
            Settlement::Complete { .. } | Settlement::Discard => self.counters.count(false, now),
            Settlement::Archive { .. } | Settlement::Retry { charge: Charge::Retry, .. } => {
                self.counters.count(true, now);
            }
            Settlement::Retry { .. } | Settlement::Release | Settlement::Hold { .. } => {}
        }
        Ok(self.obey(entry, settlement, now))
    }

    fn obey(&mut self, mut entry: Entry, settlement: Settlement, now: Timestamp) -> Option<State> {
        match settlement {
            Settlement::Complete { retain_for, result } => {
                if retain_for.is_zero() {
                    self.end_gone(entry, now);
                    return None;
                }
                entry.record.result = result.or(entry.record.result);
                entry.complete(now, now + retain_for);
                self.end_kept(entry, now);
                Some(State::Completed)
            }
            Settlement::Retry { after, error, class, charge } => {
                charge_to(&mut entry.record, charge);
                entry.fail(class, &error, now);
                if class == Class::Cancelled {
                    entry.record.cancel_requested = false;
                }
                match When::After(after).due(now) {
                    Some(due) => entry.wait_until(State::Retry, due),
                    None => entry.wait(self.end_position(), now),
                }
                let state = entry.record.state;
                self.put(entry);
                Some(state)
            }
            Settlement::Archive { error, class } => {
                entry.archive(class, &error, now);
                self.end_kept(entry, now);
                Some(State::Archived)
            }
            Settlement::Discard => {
                self.end_gone(entry, now);
                None
            }
            Settlement::Release => Some(self.release(entry, now)),
            Settlement::Hold { reason } => {
                self.pause(&reason, now);
                Some(self.release(entry, now))
            }
        }
    }

    fn release(&mut self, mut entry: Entry, now: Timestamp) -> State {
        entry.wait(entry.position, entry.waited_since.unwrap_or(now));
        self.put(entry);
        State::Pending
    }

    /// The state a task shows whose settlement with this token was done before.
    fn settled_before(&self, id: &TaskId, token: Token) -> Option<State> {
        let record = &self.tasks.get(id)?.record;
        (record.state != State::Active && record.token == Some(token)).then_some(record.state)
    }

    fn running(&mut self, id: &TaskId, token: Token) -> Result<&mut TaskRecord, Error> {
        self.check_holder(id, token)?;
        Ok(&mut self.tasks.get_mut(id).expect("its holder was just checked").record)
    }

    fn check_holder(&self, id: &TaskId, token: Token) -> Result<(), Error> {
        let Some(entry) = self.tasks.get(id) else { return Err(self.not_found(id)) };
        if entry.record.state != State::Active || entry.record.token != Some(token) {
            return Err(Error::LeaseLost { key: self.key(id) });
        }
        Ok(())
    }
}

fn charge_to(record: &mut TaskRecord, charge: Charge) {
    match charge {
        Charge::Retry => {
            record.retried = record.retried.saturating_add(1);
            record.deferrals = 0;
        }
        Charge::Deferral => record.deferrals = record.deferrals.saturating_add(1),
        Charge::Crash => record.crashes = record.crashes.saturating_add(1),
        Charge::Nothing => {}
    }
}
