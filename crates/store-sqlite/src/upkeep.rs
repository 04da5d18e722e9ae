//! [`Upkeep`]: what the loops of every process ask for.

use std::sync::Arc;
use std::time::Duration;

use poolwright_broker::{
    ArchiveLimits, Held, Promoted, Reconciled, Reply, ServerBeat, ServerId, Swept, TakeOver, Upkeep,
};
use poolwright_core::{QueueName, TaskRecord};

use crate::SqliteStore;
use crate::look;
use crate::steps::{claim, promote, reconcile, record, server, sweep};

/// Steps that look at much and write little; they share a transaction with few others.
const HEAVY: usize = 500;

impl Upkeep for SqliteStore {
    fn promote_due(&self, queues: Vec<QueueName>, limit: u32) -> Reply<'_, Promoted> {
        self.write(HEAVY, move |work| Ok(promote::promote_due(work, &queues, limit)?))
    }

    fn take_over(&self, request: TakeOver) -> Reply<'_, Vec<TaskRecord>> {
        self.write(HEAVY, move |work| {
            let mut taken = Vec::new();
            // Another process may have kept the write lock for long.
            let is_late = work.now > request.not_after;
            for name in request.queues.iter().filter(|_| !is_late) {
                let left = request.limit - u32::try_from(taken.len()).unwrap_or(request.limit);
                if let Some(queue) = work.queue(name)? {
                    taken.extend(claim::take_over(work, queue.seq, name, left, request.lease)?);
                }
            }
            Ok(taken)
        })
    }

    fn sweep(&self, limits: Vec<ArchiveLimits>) -> Reply<'_, Swept> {
        self.write(HEAVY, move |work| Ok(sweep::sweep(work, &limits)?))
    }

    fn reconcile(&self, queues: Vec<QueueName>) -> Reply<'_, Reconciled> {
        self.write(HEAVY, move |work| Ok(reconcile::reconcile(work, &queues)?))
    }

    fn unrecorded(&self, queues: Vec<QueueName>, limit: u32) -> Reply<'_, Vec<TaskRecord>> {
        Box::pin(async move {
            let seen = self.read(move |conn| look::unrecorded(conn, &queues, limit)).await?;
            self.without_poison(seen).await
        })
    }

    fn mark_recorded(&self, held: Vec<Held>) -> Reply<'_, ()> {
        self.write(held.len(), move |work| {
            for held in &held {
                record::mark_recorded(work, held)?;
            }
            Ok(())
        })
    }

    fn beat(&self, beat: ServerBeat, lasts: Duration) -> Reply<'_, ()> {
        let anchor = Arc::clone(&self.anchor);
        self.write(1, move |work| {
            // Whoever lives says so every few seconds: the right moment to see that the file still is what others use.
            anchor.check(work.now)?;
            Ok(server::beat(work, &beat, lasts)?)
        })
    }

    fn retire(&self, id: ServerId) -> Reply<'_, ()> {
        self.write(1, move |work| Ok(server::retire(work, &id)?))
    }
}
