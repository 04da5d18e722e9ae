//! [`Inspect`]: looking at queues, and acting by hand.

use bytes::Bytes;
use poolwright_broker::{
    Bulk, CancelOutcome, DayStats, Error, Find, Found, Inspect, Page, PageRequest, Quarantined, QueueStats,
    Reply, ServerBeat,
};
use poolwright_core::{QueueName, State, TaskKey, TaskRecord, When};

use crate::SqliteStore;
use crate::look::{self, Seen};
use crate::steps::{operate, quarantine, queue};

impl SqliteStore {
    /// What was seen; rows that do not decode are set aside on the way.
    pub(crate) async fn without_poison<T>(&self, seen: Seen<T>) -> Result<T, Error> {
        let Seen { value, poisons } = seen;
        if !poisons.is_empty() {
            self.write(poisons.len(), move |work| {
                for (queue, seq) in &poisons {
                    quarantine::recheck(work, queue, *seq)?;
                }
                Ok(())
            })
            .await?;
        }
        Ok(value)
    }
}

impl Inspect for SqliteStore {
    fn queues(&self) -> Reply<'_, Vec<QueueName>> {
        self.read(|conn| Ok(look::queues(conn)?))
    }

    fn queue_stats(&self, queues: Vec<QueueName>) -> Reply<'_, Vec<QueueStats>> {
        let day = self.clock.now().day();
        self.read(move |conn| queues.into_iter().map(|name| Ok(look::stats(conn, name, day)?)).collect())
    }

    fn history(&self, queue: QueueName, days: u32) -> Reply<'_, Vec<DayStats>> {
        let today = self.clock.now().day();
        self.read(move |conn| Ok(look::history(conn, &queue, today, days)?))
    }

    fn page(&self, request: PageRequest) -> Reply<'_, Page> {
        Box::pin(async move {
            loop {
                let request = request.clone();
                let seen = self.read(move |conn| look::page(conn, &request)).await?;
                if seen.poisons.is_empty() {
                    return Ok(seen.value);
                }
                // Then the page is read again: what was set aside must not make it look like the last one.
                self.without_poison(seen).await?;
            }
        })
    }

    fn get(&self, key: TaskKey) -> Reply<'_, Option<TaskRecord>> {
        Box::pin(async move {
            let seen = self.read(move |conn| look::get(conn, &key)).await?;
            self.without_poison(seen).await
        })
    }

    fn find(&self, what: Find, limit: u32) -> Reply<'_, Found> {
        self.read(move |conn| Ok(look::find(conn, &what, limit)?))
    }

    fn request_cancel(&self, keys: Vec<TaskKey>) -> Reply<'_, Vec<CancelOutcome>> {
        self.write(keys.len(), move |work| {
            let mut outcomes = Vec::with_capacity(keys.len());
            for key in &keys {
                outcomes.push(operate::request_cancel(work, key)?);
            }
            Ok(outcomes)
        })
    }

    fn run_now(&self, key: TaskKey) -> Reply<'_, State> {
        self.write(1, move |work| operate::run_now(work, &key))
    }

    fn archive(&self, key: TaskKey, reason: String) -> Reply<'_, State> {
        self.write(1, move |work| operate::archive(work, &key, &reason))
    }

    fn delete(&self, key: TaskKey) -> Reply<'_, State> {
        self.write(1, move |work| operate::delete(work, &key))
    }

    fn bulk(&self, bulk: Bulk) -> Reply<'_, u64> {
        self.write(bulk.limit as usize, move |work| Ok(operate::bulk(work, &bulk)?))
    }

    fn reschedule(&self, key: TaskKey, when: When) -> Reply<'_, ()> {
        self.write(1, move |work| operate::reschedule(work, &key, when))
    }

    fn update_payload(&self, key: TaskKey, payload: Bytes) -> Reply<'_, ()> {
        self.write(1, move |work| operate::update_payload(work, &key, &payload))
    }

    fn pause(&self, name: QueueName, reason: String) -> Reply<'_, bool> {
        self.write(1, move |work| Ok(queue::pause(work, &name, &reason)?))
    }

    fn resume(&self, name: QueueName) -> Reply<'_, bool> {
        self.write(1, move |work| Ok(queue::resume(work, &name)?))
    }

    fn remove_queue(&self, name: QueueName, force: bool) -> Reply<'_, u64> {
        Box::pin(async move {
            let tasks = self.write(1, move |work| queue::remove(work, &name, force)).await?;
            // The queue is gone. Its rows follow in steps that let others in between; should this process die
            // meanwhile, a sweep goes on.
            while self.write(tasks.min(1_000) as usize, |work| Ok(queue::clear_removed(work)?)).await? {}
            Ok(tasks)
        })
    }

    fn servers(&self) -> Reply<'_, Vec<ServerBeat>> {
        let now = self.clock.now();
        self.read(move |conn| Ok(look::servers(conn, now)?))
    }

    fn quarantine(&self, queue: QueueName, limit: u32) -> Reply<'_, Vec<Quarantined>> {
        self.read(move |conn| Ok(look::quarantine(conn, queue, limit)?))
    }
}
