//! [`Dispatch`]: claims, leases and settlements.

use std::time::Duration;

use bytes::Bytes;
use poolwright_broker::{ClaimReply, ClaimRequest, Dispatch, Error, Extension, Held, Reply, Settled};
use poolwright_core::Settlement;

use crate::SqliteStore;
use crate::steps::{claim, lease, settle};

impl Dispatch for SqliteStore {
    fn claim(&self, request: ClaimRequest) -> Reply<'_, ClaimReply> {
        let weight = request.demands.iter().map(|demand| demand.slots as usize).sum();
        self.write(weight, move |work| Ok(claim::claim(work, &request)?))
    }

    fn extend(&self, held: Vec<Held>, lease: Duration) -> Reply<'_, Vec<Extension>> {
        self.write(held.len(), move |work| {
            let mut extensions = Vec::with_capacity(held.len());
            for held in &held {
                extensions.push(lease::extend(work, held, lease)?);
            }
            Ok(extensions)
        })
    }

    fn settle(&self, settlements: Vec<(Held, Settlement)>) -> Reply<'_, Vec<Result<Settled, Error>>> {
        self.write(settlements.len(), move |work| {
            let mut outcomes = Vec::with_capacity(settlements.len());
            for (held, settlement) in &settlements {
                outcomes.push(settle::settle(work, held, settlement)?);
            }
            Ok(outcomes)
        })
    }

    fn store_result(&self, held: Held, result: Bytes) -> Reply<'_, ()> {
        self.write(1, move |work| lease::store_result(work, &held, &result))
    }

    fn progress(&self, held: Held, done: f64, note: String) -> Reply<'_, ()> {
        self.write(1, move |work| lease::progress(work, &held, done, &note))
    }
}
