//! [`Upkeep`]: what the loops of every process ask for.

use std::time::Duration;

use poolwright_broker::{
    ArchiveLimits, Held, Promoted, Reconciled, Reply, ServerBeat, ServerId, Swept, TakeOver, Upkeep,
};
use poolwright_core::{QueueName, TaskRecord};

use crate::MemoryStore;

/// How many tasks one sweep removes at most, so that it holds the lock for a moment only.
const SWEEP_MAX: u64 = 1_000;

impl Upkeep for MemoryStore {
    fn promote_due(&self, queues: Vec<QueueName>, limit: u32) -> Reply<'_, Promoted> {
        self.step(move |content, now| {
            let mut promoted = Promoted::default();
            for name in &queues {
                let Some(queue) = content.queues.get_mut(name) else { continue };
                promoted.tasks += queue.promote_due(limit - promoted.tasks, now);
                promoted.next_due = promoted.next_due.into_iter().chain(queue.next_due_at()).min();
            }
            promoted
        })
    }

    fn take_over(&self, request: TakeOver) -> Reply<'_, Vec<TaskRecord>> {
        self.step(move |content, now| {
            let mut taken = Vec::new();
            let is_late = now > request.not_after;
            for name in request.queues.iter().filter(|_| !is_late) {
                let Some(queue) = content.queues.get_mut(name) else { continue };
                let limit = request.limit as usize - taken.len();
                taken.extend(queue.take_over(limit, now + request.lease, now, &self.chance));
            }
            taken
        })
    }

    fn sweep(&self, limits: Vec<ArchiveLimits>) -> Reply<'_, Swept> {
        self.step(move |content, now| {
            let mut all = Swept::default();
            for limits in &limits {
                let Some(queue) = content.queues.get_mut(&limits.queue) else { continue };
                let swept = queue.sweep(limits, SWEEP_MAX - all.expired - all.trimmed, now);
                all.expired += swept.expired;
                all.trimmed += swept.trimmed;
                all.more |= swept.more;
            }
            all
        })
    }

    fn reconcile(&self, _queues: Vec<QueueName>) -> Reply<'_, Reconciled> {
        // Nobody else writes here, and a step that panicked half way leaves no store to reconcile.
        self.step(|_, _| Reconciled::default())
    }

    fn unrecorded(&self, queues: Vec<QueueName>, limit: u32) -> Reply<'_, Vec<TaskRecord>> {
        self.step(move |content, _| {
            let known = queues.iter().filter_map(|name| content.queues.get(name));
            known.flat_map(|queue| queue.unrecorded()).take(limit as usize).cloned().collect()
        })
    }

    fn mark_recorded(&self, held: Vec<Held>) -> Reply<'_, ()> {
        self.step(move |content, _| {
            for Held { key, token } in &held {
                if let Some(queue) = content.queues.get_mut(&key.queue) {
                    queue.mark_recorded(&key.id, *token);
                }
            }
        })
    }

    fn beat(&self, mut server: ServerBeat, lasts: Duration) -> Reply<'_, ()> {
        self.step(move |content, now| {
            server.beat_at = now;
            content.servers.retain(|_, (_, until)| *until > now);
            content.servers.insert(server.id.clone(), (server, now + lasts));
        })
    }

    fn retire(&self, server: ServerId) -> Reply<'_, ()> {
        self.step(move |content, _| {
            content.servers.remove(&server);
        })
    }
}
