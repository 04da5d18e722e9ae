//! [`Inspect`]: looking, and acting by hand.

use bytes::Bytes;
use poolwright_broker::{
    Bulk, CancelOutcome, DayStats, Error, Find, Found, Inspect, Page, PageRequest, Quarantined, QueueStats,
    Reply, ServerBeat,
};
use poolwright_core::text::error_text;
use poolwright_core::{QueueName, State, TaskKey, TaskRecord, When};

use crate::MemoryStore;
use crate::state::{Content, Counters, Place, Queue};

impl Inspect for MemoryStore {
    fn queues(&self) -> Reply<'_, Vec<QueueName>> {
        self.step(|content, _| {
            let known = content.queues.values().filter(|queue| queue.known);
            known.map(|queue| queue.name().clone()).collect()
        })
    }

    fn queue_stats(&self, queues: Vec<QueueName>) -> Reply<'_, Vec<QueueStats>> {
        self.step(move |content, now| {
            let stats = queues.into_iter().map(|name| match content.queues.get(&name) {
                Some(queue) => queue.stats(now),
                None => QueueStats::empty(name),
            });
            stats.collect()
        })
    }

    fn history(&self, queue: QueueName, days: u32) -> Reply<'_, Vec<DayStats>> {
        self.step(move |content, now| match content.queues.get(&queue) {
            Some(queue) => queue.counters.history(days, now),
            None => Counters::default().history(days, now),
        })
    }

    fn page(&self, request: PageRequest) -> Reply<'_, Page> {
        self.try_step(move |content, _| {
            let PageRequest { queue, state, after, limit } = request;
            let after = after.map(|cursor| Place::read(&cursor, queue.as_str(), state)).transpose()?;
            let queue = content.queues.get(&queue);
            Ok(queue.map(|queue| queue.page(state, after.as_ref(), limit)).unwrap_or_default())
        })
    }

    fn get(&self, key: TaskKey) -> Reply<'_, Option<TaskRecord>> {
        self.step(move |content, _| {
            let entry = content.queues.get(&key.queue)?.tasks.get(&key.id)?;
            Some(entry.record.clone())
        })
    }

    fn find(&self, what: Find, limit: u32) -> Reply<'_, Found> {
        self.step(move |content, _| {
            let mut matches = content.queues.values().flat_map(|queue| {
                queue.index.find(&what).map(|id| {
                    let record = &queue.tasks[id].record;
                    (record.key.clone(), record.state, record.task_type.clone())
                })
            });
            let tasks = matches.by_ref().take(limit as usize).collect();
            Found { tasks, complete: matches.next().is_none() }
        })
    }

    fn request_cancel(&self, keys: Vec<TaskKey>) -> Reply<'_, Vec<CancelOutcome>> {
        self.step(move |content, _| {
            let outcomes = keys.iter().map(|key| match content.queues.get_mut(&key.queue) {
                Some(queue) => queue.request_cancel(&key.id),
                None => CancelOutcome::NotFound,
            });
            outcomes.collect()
        })
    }

    fn run_now(&self, key: TaskKey) -> Reply<'_, State> {
        self.try_step(move |content, now| queue_of(content, &key)?.run_now(&key.id, now))
    }

    fn archive(&self, key: TaskKey, reason: String) -> Reply<'_, State> {
        self.try_step(move |content, now| {
            queue_of(content, &key)?.archive(&key.id, &reason, now, &self.chance)
        })
    }

    fn delete(&self, key: TaskKey) -> Reply<'_, State> {
        self.try_step(move |content, _| queue_of(content, &key)?.delete(&key.id))
    }

    fn bulk(&self, bulk: Bulk) -> Reply<'_, u64> {
        self.step(move |content, now| match content.queues.get_mut(&bulk.queue) {
            Some(queue) => queue.bulk(&bulk, now, &self.chance),
            None => 0,
        })
    }

    fn reschedule(&self, key: TaskKey, when: When) -> Reply<'_, ()> {
        self.try_step(move |content, now| queue_of(content, &key)?.reschedule(&key.id, when, now))
    }

    fn update_payload(&self, key: TaskKey, payload: Bytes) -> Reply<'_, ()> {
        self.try_step(move |content, _| queue_of(content, &key)?.update_payload(&key.id, payload))
    }

    fn pause(&self, queue: QueueName, reason: String) -> Reply<'_, bool> {
        self.step(move |content, now| {
            let queue = content.queue(&queue);
            let paused_now = queue.pause(&reason, now);
            if let Some(paused) = queue.paused.as_mut().filter(|_| !paused_now) {
                paused.reason = error_text(&reason);
            }
            paused_now
        })
    }

    fn resume(&self, queue: QueueName) -> Reply<'_, bool> {
        self.step(move |content, _| content.queues.get_mut(&queue).is_some_and(Queue::resume))
    }

    fn remove_queue(&self, queue: QueueName, force: bool) -> Reply<'_, u64> {
        self.try_step(move |content, now| {
            let known = content.queues.get(&queue).filter(|found| found.known);
            let stats = known.ok_or_else(|| Error::NoQueue { queue: queue.clone() })?.stats(now);
            let (tasks, active) = (stats.size() + stats.completed, stats.active);
            if active > 0 || (tasks > 0 && !force) {
                return Err(Error::NotEmpty { queue, tasks, active });
            }
            content.queues.remove(&queue);
            Ok(tasks)
        })
    }

    fn servers(&self) -> Reply<'_, Vec<ServerBeat>> {
        self.step(|content, now| {
            let alive = content.servers.values().filter(|(_, until)| *until > now);
            alive.map(|(beat, _)| beat.clone()).collect()
        })
    }

    fn quarantine(&self, _queue: QueueName, _limit: u32) -> Reply<'_, Vec<Quarantined>> {
        // Records are never encoded here, so none can fail to decode.
        self.step(|_, _| Vec::new())
    }
}

fn queue_of<'a>(content: &'a mut Content, key: &TaskKey) -> Result<&'a mut Queue, Error> {
    content.queues.get_mut(&key.queue).ok_or_else(|| Error::NotFound { key: key.clone() })
}
