//! [`Upkeep`]: what time does to tasks, and what other programs leave behind.

use std::sync::PoisonError;
use std::time::Duration;

use poolwright_broker::{
    ArchiveLimits, Error, Held, LEASE_AHEAD_MAX, Promoted, Reconciled, Reply, ServerBeat, ServerId, Swept,
    TakeOver, Upkeep,
};
use poolwright_core::{QueueName, TaskRecord, Timestamp};

use crate::RedisStore;
use crate::dispatch::write_held;
use crate::keys::Keys;
use crate::link::Kind;
use crate::record::Shown;
use crate::reply::Parts;
use crate::script::{MARK_RECORDED, PROMOTE, SWEEP, TAKE_OVER, UNRECORDED};
use crate::submit::micros;

/// The most tasks that one call moves or removes.
const STEP: u32 = 1_000;

/// How long the lease of a Go worker must stand still, by the server's clock, until its task is taken over. Such a worker
/// extends its leases every 5 s, and its own recoverer waits as long.
const STILL: Duration = Duration::from_secs(30);

impl Upkeep for RedisStore {
    fn promote_due(&self, queues: Vec<QueueName>, limit: u32) -> Reply<'_, Promoted> {
        Box::pin(async move {
            let mut all = Promoted::default();
            for batch in self.queue_batches(queues) {
                let mut left = limit - all.tasks.min(limit);
                loop {
                    let some = self.promote_some(&batch.queues, left.min(STEP)).await?;
                    all.tasks += some.tasks;
                    left -= some.tasks.min(left);
                    if some.tasks < STEP || left == 0 {
                        all.next_due = all.next_due.into_iter().chain(some.next_due).min();
                        break;
                    }
                }
            }
            Ok(all)
        })
    }

    /// Tasks are due at whole seconds, and Go programs schedule some without a word.
    fn look_every(&self) -> Option<Duration> {
        Some(Duration::from_secs(1))
    }

    fn take_over(&self, request: TakeOver) -> Reply<'_, Vec<TaskRecord>> {
        Box::pin(async move {
            let mut taken = Vec::new();
            for batch in self.queue_batches(request.queues.clone()) {
                let limit = request.limit - u32::try_from(taken.len()).unwrap_or(u32::MAX).min(request.limit);
                self.take_over_some(&request, &batch.queues, limit, &mut taken).await?;
            }
            Ok(taken)
        })
    }

    fn sweep(&self, limits: Vec<ArchiveLimits>) -> Reply<'_, Swept> {
        Box::pin(async move {
            let mut swept = Swept::default();
            let batches = self.batches(limits.into_iter().map(|limits| (limits.queue.clone(), limits)));
            for batch in batches {
                let mut call = self.call(&SWEEP);
                call.number(STEP);
                for (_, _, limits) in &batch.items {
                    let keys = Keys::of(&limits.queue);
                    call.key(keys.pending()).arg(keys.prefix().to_owned()).number(limits.tasks_max);
                    call.number(micros(limits.age_max)).flag(limits.spare_unrecorded);
                }
                let mut parts = self.run(call, Kind::Write).await?;
                swept.expired += parts.count()?;
                swept.trimmed += parts.count()?;
                swept.more |= !parts.bytes()?.is_empty();
            }
            Ok(swept)
        })
    }

    fn reconcile(&self, queues: Vec<QueueName>) -> Reply<'_, Reconciled> {
        Box::pin(self.reconcile_all(queues))
    }

    fn unrecorded(&self, queues: Vec<QueueName>, limit: u32) -> Reply<'_, Vec<TaskRecord>> {
        Box::pin(async move {
            let mut found = Vec::new();
            for queue in queues {
                let left = limit - u32::try_from(found.len()).unwrap_or(u32::MAX).min(limit);
                self.unrecorded_in(&queue, left, &mut found).await?;
            }
            Ok(found)
        })
    }

    fn mark_recorded(&self, held: Vec<Held>) -> Reply<'_, ()> {
        Box::pin(async move {
            let batches = self.batches(held.into_iter().map(|held| (held.key.queue.clone(), held)));
            let build = |batch: &crate::store::Batch<Held>| {
                let mut call = self.call_for(&MARK_RECORDED, batch);
                for (_, number, held) in &batch.items {
                    write_held(&mut call, *number, held);
                }
                call
            };
            self.run_all(batches, Kind::Write, build).await.map(drop)
        })
    }

    fn beat(&self, server: ServerBeat, lasts: Duration) -> Reply<'_, ()> {
        Box::pin(self.beat_as(server, lasts))
    }

    fn retire(&self, server: ServerId) -> Reply<'_, ()> {
        Box::pin(self.retire_as(server))
    }
}

impl RedisStore {
    async fn promote_some(&self, queues: &[QueueName], limit: u32) -> Result<Promoted, Error> {
        let mut call = self.call(&PROMOTE);
        call.number(limit);
        for queue in queues {
            let keys = Keys::of(queue);
            call.key(keys.pending()).arg(keys.prefix().to_owned());
        }
        let mut parts = self.run(call, Kind::Write).await?;
        let tasks = u32::try_from(parts.count()?).unwrap_or(u32::MAX);
        let due = parts.text()?;
        let next_due = due.parse().ok().map(Timestamp::from_secs);
        self.wake(queues, parts.list()?)?;
        Ok(Promoted { tasks, next_due })
    }

    async fn take_over_some(
        &self,
        request: &TakeOver,
        queues: &[QueueName],
        limit: u32,
        taken: &mut Vec<TaskRecord>,
    ) -> Result<(), Error> {
        let mut call = self.call(&TAKE_OVER);
        call.number(limit).number(micros(request.lease)).number(request.not_after.as_micros());
        call.number(micros(LEASE_AHEAD_MAX)).number(micros(STILL)).arg(self.token_stem());
        for queue in queues {
            let keys = Keys::of(queue);
            call.key(keys.pending()).arg(keys.prefix().to_owned());
        }
        let mut parts = self.run(call, Kind::Write).await?;
        let mut poisoned = Vec::new();
        for mut task in parts.list()?.lists()? {
            let (number, _token) = (task.place()?, task.bytes()?);
            let odd = || Error::Corrupt { what: "a queue was taken over that nobody asked for".to_owned() };
            let queue = queues.get(number.wrapping_sub(1)).ok_or_else(odd)?;
            match Shown::read(&mut task.list()?)?.record(queue) {
                Ok(task) => {
                    self.held.add(&task);
                    taken.push(task);
                }
                Err(poison) => poisoned.push((queue.clone(), poison)),
            }
        }
        self.set_aside(poisoned).await
    }

    async fn unrecorded_in(
        &self,
        queue: &QueueName,
        limit: u32,
        found: &mut Vec<TaskRecord>,
    ) -> Result<(), Error> {
        let keys = Keys::of(queue);
        let from = self.recorded_until().get(queue).cloned().unwrap_or_else(|| "-inf".to_owned());
        let mut call = self.call(&UNRECORDED);
        call.key(keys.archived()).arg(keys.prefix().to_owned()).number(limit).arg(from);
        let mut parts = self.run(call, Kind::Read).await?;
        found.extend(self.records(queue, parts.list()?).await?);
        let until = parts.text()?;
        self.recorded_until().insert(queue.clone(), until);
        Ok(())
    }

    fn recorded_until(&self) -> std::sync::MutexGuard<'_, std::collections::HashMap<QueueName, String>> {
        self.recorded_until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at every archived task again for its dead letter.
    pub(crate) fn forget_recorded(&self, queue: &QueueName) {
        self.recorded_until().remove(queue);
    }

    /// Understands tasks as shown; what cannot be understood is set aside.
    pub(crate) async fn records(
        &self,
        queue: &QueueName,
        mut tasks: Parts,
    ) -> Result<Vec<TaskRecord>, Error> {
        let (mut records, mut poisoned) = (Vec::with_capacity(tasks.len()), Vec::new());
        for mut task in tasks.lists()? {
            match Shown::read(&mut task)?.record(queue) {
                Ok(record) => records.push(record),
                Err(poison) => poisoned.push((queue.clone(), poison)),
            }
        }
        self.set_aside(poisoned).await?;
        Ok(records)
    }
}
