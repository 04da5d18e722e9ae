//! [`Inspect`]: looking at queues, and changing tasks by hand.

use bytes::Bytes;
use poolwright_broker::{
    Bulk, BulkAction, CancelOutcome, DayStats, Error, Find, Found, HISTORY_DAYS_MAX, Inspect, Page,
    PageRequest, Paused, Quarantined, QueueStats, Reply, ServerBeat,
};
use poolwright_core::text::error_text;
use poolwright_core::{QueueName, State, TaskId, TaskKey, TaskRecord, Timestamp, TypeName, When};
use redis::Value;

use crate::RedisStore;
use crate::keys::{Keys, QUEUES};
use crate::link::Kind;
use crate::notes::{scope_entry, subject_entry};
use crate::record::Shown;
use crate::reply::Parts;
use crate::script::{
    CHANGE, Call, FIND, GET, HISTORY, PAUSE, QUARANTINE, REMOVE_QUEUE, REQUEST_CANCEL, STATS,
};
use crate::submit::{state, when};
use crate::wire::{TaskMessage, Wire};

/// Tasks that one step of a removal takes along.
const REMOVED_MAX: u32 = 500;

const CHANGE_WANTED: &str = "only a pending, scheduled or retry task can be changed";

impl Inspect for RedisStore {
    fn queues(&self) -> Reply<'_, Vec<QueueName>> {
        Box::pin(async {
            let mut command = redis::cmd("SMEMBERS");
            command.arg(QUEUES);
            let answer = self.link.call(Some(QUEUES.as_bytes()), command, Kind::Read).await?;
            let (Value::Array(names) | Value::Set(names)) = answer else { return Ok(Vec::new()) };
            let mut queues: Vec<_> = names.into_iter().filter_map(name).collect();
            queues.sort_unstable();
            Ok(queues)
        })
    }

    fn queue_stats(&self, queues: Vec<QueueName>) -> Reply<'_, Vec<QueueStats>> {
        Box::pin(async move {
            let mut all: Vec<_> = queues.iter().cloned().map(QueueStats::empty).collect();
            let batches = self.queue_batches(queues);
            let build = |batch: &crate::store::Batch<()>| {
                let mut call = self.call(&STATS);
                for (_, number, ()) in &batch.items {
                    let keys = Keys::of(&batch.queues[number - 1]);
                    call.key(keys.pending()).arg(keys.prefix().to_owned());
                }
                call
            };
            for (batch, mut parts) in self.run_all(batches, Kind::Read, build).await? {
                for (at, _, ()) in &batch.items {
                    read_stats(&mut all[*at], parts.list()?)?;
                }
            }
            Ok(all)
        })
    }

    fn history(&self, queue: QueueName, days: u32) -> Reply<'_, Vec<DayStats>> {
        Box::pin(async move {
            let keys = Keys::of(&queue);
            let mut call = self.call(&HISTORY);
            call.key(keys.pending()).arg(keys.prefix().to_owned()).number(days.min(HISTORY_DAYS_MAX));
            let mut parts = self.run(call, Kind::Read).await?;
            let (today, mut numbers) = (parts.number()?, parts.list()?);
            let mut history = Vec::with_capacity(numbers.len() / 2);
            for day in (0..).map(|back| today - back) {
                if numbers.len() < 2 {
                    break;
                }
                history.push(DayStats { day, processed: numbers.count()?, failed: numbers.count()? });
            }
            Ok(history)
        })
    }

    fn page(&self, request: PageRequest) -> Reply<'_, Page> {
        Box::pin(self.page_of(request))
    }

    fn get(&self, key: TaskKey) -> Reply<'_, Option<TaskRecord>> {
        Box::pin(async move {
            let mut parts = self.run(self.call_on(&GET, &key), Kind::Read).await?;
            if parts.len() == 0 {
                return Ok(None);
            }
            match Shown::read(&mut parts.list()?)?.record(&key.queue) {
                Ok(task) => Ok(Some(task)),
                Err(poison) => Err(Error::Corrupt { what: format!("task {key}: {}", poison.reason) }),
            }
        })
    }

    fn find(&self, what: Find, limit: u32) -> Reply<'_, Found> {
        Box::pin(async move {
            let entry = match &what {
                Find::Subject(subject) => subject_entry(subject),
                Find::Scope(scope) => scope_entry(scope),
            };
            let mut found = Found { tasks: Vec::new(), complete: true };
            for queue in self.queues().await? {
                let left = limit - u32::try_from(found.tasks.len()).unwrap_or(u32::MAX).min(limit);
                self.find_in(&queue, &entry, left, &mut found).await?;
            }
            Ok(found)
        })
    }

    fn request_cancel(&self, keys: Vec<TaskKey>) -> Reply<'_, Vec<CancelOutcome>> {
        Box::pin(async move {
            let mut outcomes = vec![CancelOutcome::NotFound; keys.len()];
            let batches = self.batches(keys.into_iter().map(|key| (key.queue.clone(), key)));
            let build = |batch: &crate::store::Batch<TaskKey>| {
                let mut call = self.call_for(&REQUEST_CANCEL, batch);
                for (_, number, key) in &batch.items {
                    call.number(i128::try_from(*number).unwrap_or(0)).arg(key.id.as_str().to_owned());
                }
                call
            };
            for (batch, mut parts) in self.run_all(batches, Kind::Write, build).await? {
                for (at, ..) in &batch.items {
                    outcomes[*at] = match parts.text()?.as_str() {
                        "" => CancelOutcome::NotFound,
                        "archived" | "completed" => CancelOutcome::Finished,
                        "active" => CancelOutcome::Signalled,
                        _ => CancelOutcome::Flagged,
                    };
                }
            }
            Ok(outcomes)
        })
    }

    fn run_now(&self, key: TaskKey) -> Reply<'_, State> {
        Box::pin(self.operate(BulkAction::RunNow, key, String::new()))
    }

    fn archive(&self, key: TaskKey, reason: String) -> Reply<'_, State> {
        Box::pin(self.operate(BulkAction::Archive, key, reason))
    }

    fn delete(&self, key: TaskKey) -> Reply<'_, State> {
        Box::pin(self.operate(BulkAction::Delete, key, String::new()))
    }

    fn bulk(&self, bulk: Bulk) -> Reply<'_, u64> {
        Box::pin(self.operate_many(bulk))
    }

    fn reschedule(&self, key: TaskKey, to: When) -> Reply<'_, ()> {
        Box::pin(async move {
            let mut call = self.call_on(&CHANGE, &key);
            let (word, time) = when(to);
            call.arg("when").arg(word).number(time);
            self.change(call, &key).await?;
            self.bells.ring(&key.queue);
            Ok(())
        })
    }

    fn update_payload(&self, key: TaskKey, payload: Bytes) -> Reply<'_, ()> {
        Box::pin(async move {
            let mut call = self.call_on(&CHANGE, &key);
            call.arg("payload").arg(payload);
            self.change(call, &key).await
        })
    }

    fn pause(&self, queue: QueueName, reason: String) -> Reply<'_, bool> {
        Box::pin(self.set_pause(queue, "pause", error_text(&reason)))
    }

    fn resume(&self, queue: QueueName) -> Reply<'_, bool> {
        Box::pin(async move {
            let resumed = self.set_pause(queue.clone(), "resume", String::new()).await?;
            if resumed {
                self.bells.ring(&queue);
            }
            Ok(resumed)
        })
    }

    fn remove_queue(&self, queue: QueueName, force: bool) -> Reply<'_, u64> {
        Box::pin(self.remove(queue, force))
    }

    fn servers(&self) -> Reply<'_, Vec<ServerBeat>> {
        Box::pin(self.all_servers())
    }

    fn quarantine(&self, queue: QueueName, limit: u32) -> Reply<'_, Vec<Quarantined>> {
        Box::pin(async move {
            let keys = Keys::of(&queue);
            let mut call = self.call(&QUARANTINE);
            call.key(keys.pending()).arg(keys.prefix().to_owned()).number(limit);
            let mut parts = self.run(call, Kind::Read).await?;
            let mut records = Vec::new();
            for mut aside in parts.list()?.lists()? {
                records.push(Quarantined {
                    queue: queue.clone(),
                    id: aside.text()?,
                    reason: aside.text()?,
                    at: aside.time()?,
                    raw: aside.bytes()?,
                });
            }
            Ok(records)
        })
    }
}

/// A queue's name; what cannot be one is none of ours.
fn name(value: Value) -> Option<QueueName> {
    let Value::BulkString(bytes) = value else { return None };
    QueueName::new(std::str::from_utf8(&bytes).ok()?).ok()
}

fn read_stats(stats: &mut QueueStats, mut numbers: Parts) -> Result<(), Error> {
    stats.pending = numbers.count()?;
    stats.active = numbers.count()?;
    stats.scheduled = numbers.count()?;
    stats.retry = numbers.count()?;
    stats.archived = numbers.count()?;
    stats.completed = numbers.count()?;
    stats.quarantined = numbers.count()?;
    stats.processed_today = numbers.count()?;
    stats.failed_today = numbers.count()?;
    stats.processed = numbers.count()?;
    stats.failed = numbers.count()?;
    let (since, reason) = (numbers.text()?, numbers.text()?);
    let since = since.parse().ok().map(Timestamp::from_micros);
    stats.paused = since.map(|since| Paused { reason, since });
    let nanos = numbers.text()?.parse::<i64>().ok();
    stats.oldest_pending = nanos.map(|nanos| Timestamp::from_micros(nanos.div_euclid(1_000)));
    Ok(())
}

impl RedisStore {
    /// A call on one task: its hash, the queue's prefix, its id.
    pub(crate) fn call_on(&self, script: &'static crate::script::Script, key: &TaskKey) -> Call {
        let keys = Keys::of(&key.queue);
        let mut call = self.call(script);
        call.key(keys.task(&key.id)).arg(keys.prefix().to_owned()).arg(key.id.as_str().to_owned());
        call
    }

    async fn change(&self, call: Call, key: &TaskKey) -> Result<(), Error> {
        let mut parts = self.run(call, Kind::Write).await?;
        let (answer, word) = (parts.text()?, parts.text()?);
        match answer.as_str() {
            "done" => Ok(()),
            "missing" => Err(Error::NotFound { key: key.clone() }),
            _ => Err(Error::WrongState { key: key.clone(), state: state(&word)?, wanted: CHANGE_WANTED }),
        }
    }

    async fn find_in(
        &self,
        queue: &QueueName,
        entry: &str,
        limit: u32,
        found: &mut Found,
    ) -> Result<(), Error> {
        let keys = Keys::of(queue);
        let mut call = self.call(&FIND);
        call.key(keys.index(entry)).arg(keys.prefix().to_owned()).arg(entry.to_owned()).number(limit);
        let mut parts = self.run(call, Kind::Write).await?;
        for mut task in parts.list()?.lists()? {
            let (id, word, message) = (task.text()?, task.text()?, task.bytes()?);
            let message = TaskMessage::from_bytes(&message).ok();
            let task_type = message.and_then(|message| TypeName::new(message.task_type).ok());
            // What cannot be read is set aside by the next who meets it.
            if let (Ok(id), Ok(state), Some(task_type)) = (TaskId::new(id), state(&word), task_type) {
                found.tasks.push((TaskKey::new(queue.clone(), id), state, task_type));
            }
        }
        found.complete &= parts.bytes()?.is_empty();
        Ok(())
    }

    async fn set_pause(&self, queue: QueueName, what: &'static str, reason: String) -> Result<bool, Error> {
        let keys = Keys::of(&queue);
        let mut call = self.call(&PAUSE);
        call.key(keys.paused()).arg(keys.prefix().to_owned()).arg(what).arg(reason);
        Ok(!self.run(call, Kind::Write).await?.bytes()?.is_empty())
    }

    async fn remove(&self, queue: QueueName, force: bool) -> Result<u64, Error> {
        let keys = Keys::of(&queue);
        let mut removed = 0;
        loop {
            let mut call = self.call(&REMOVE_QUEUE);
            call.key(keys.pending()).arg(keys.prefix().to_owned()).flag(force);
            call.flag(!self.link.is_cluster()).number(REMOVED_MAX);
            let mut parts = self.run(call, Kind::Write).await?;
            let answer = parts.text()?;
            removed += parts.count()?;
            match answer.as_str() {
                "more" => {}
                "none" => return Err(Error::NoQueue { queue }),
                "not_empty" => {
                    let (tasks, active) = (parts.count()?, parts.count()?);
                    return Err(Error::NotEmpty { queue, tasks, active });
                }
                _ => break,
            }
        }
        if self.link.is_cluster() && !self.unregister(&queue).await? && removed == 0 {
            return Err(Error::NoQueue { queue });
        }
        Ok(removed)
    }
}
