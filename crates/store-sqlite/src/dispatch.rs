//! [`Dispatch`]: claims, leases and settlements.

use std::time::Duration;

use bytes::Bytes;
use poolwright_broker::{
    ClaimReply, ClaimRequest, Dispatch, Error, Exchanged, Extension, Held, Reply, Settled,
};
use poolwright_core::Settlement;

use crate::SqliteStore;
use crate::steps::{claim, lease, settle};
use crate::work::Work;

/// About how many tasks a claim touches.
fn weight(request: &ClaimRequest) -> usize {
    request.demands.iter().map(|demand| demand.slots as usize).sum()
}

fn settle_all(
    work: &mut Work<'_>,
    settlements: &[(Held, Settlement)],
) -> rusqlite::Result<Vec<Result<Settled, Error>>> {
    settlements.iter().map(|(held, settlement)| settle::settle(work, held, settlement)).collect()
}

impl Dispatch for SqliteStore {
    fn claim(&self, request: ClaimRequest) -> Reply<'_, ClaimReply> {
        self.write(weight(&request), move |work| Ok(claim::claim(work, &request)?))
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
        self.write(settlements.len(), move |work| Ok(settle_all(work, &settlements)?))
    }

    fn exchange(&self, settlements: Vec<(Held, Settlement)>, request: ClaimRequest) -> Reply<'_, Exchanged> {
        self.write(settlements.len() + weight(&request), move |work| {
            let outcomes = settle_all(work, &settlements)?;
            Ok(Exchanged { outcomes, claimed: Ok(claim::claim(work, &request)?) })
        })
    }

    fn store_result(&self, held: Held, result: Bytes) -> Reply<'_, ()> {
        self.write(1, move |work| lease::store_result(work, &held, &result))
    }

    fn progress(&self, held: Held, done: f64, note: String) -> Reply<'_, ()> {
        self.write(1, move |work| lease::progress(work, &held, done, &note))
    }
}
