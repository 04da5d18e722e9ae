//! What schedulers tell of themselves, as asynq's do: their entries for a while, and when an entry enqueued.
//!
//! Screens of both sides read it; nothing is scheduled from it.

use std::time::Duration;

use poolwright_broker::Error;
use poolwright_core::Timestamp;
use redis::{Cmd, Value};

use crate::RedisStore;
use crate::keys::{self, SCHEDULERS};
use crate::link::Kind;
use crate::submit::micros;
use crate::wire::{SchedulerEnqueueEvent, SchedulerEntry, Wire};

/// How many enqueues of an entry are kept: asynq's number.
const EVENTS_MAX: i64 = 1_000;

/// How long the events of an entry are kept after the last one. asynq keeps them for ever, and a scheduler that crashes leaves
/// them behind.
const EVENTS_FOR: Duration = Duration::from_secs(30 * 86_400);

/// A scheduler that lives.
#[derive(Debug, Clone, PartialEq)]
pub struct Scheduler {
    /// `host:pid:uuid`.
    pub id: String,
    /// Its entries, in the order in which it told them.
    pub entries: Vec<SchedulerEntry>,
}

impl RedisStore {
    /// Says that a scheduler lives and what its entries are; in place of what it said before, for so long from now.
    ///
    /// # Errors
    /// [`Error::Refused`] also when an option is not written as asynq writes it: `MaxRetry(3)`. [`Error::Unavailable`].
    pub async fn beat_scheduler(
        &self,
        id: &str,
        entries: &[SchedulerEntry],
        lasts: Duration,
    ) -> Result<(), Error> {
        entries.iter().try_for_each(options_can_be_read)?;
        let key = keys::scheduler(id);
        let over = self.time.now() + lasts;
        let mut index = command("ZADD", SCHEDULERS);
        index.arg(over.as_secs() + 1).arg(&key);
        self.link.call(Some(SCHEDULERS.as_bytes()), index, Kind::Write).await?;
        let mut commands = vec![command("DEL", &key)];
        for entry in entries {
            let mut push = command("LPUSH", &key);
            push.arg(entry.to_bytes());
            commands.push(push);
        }
        let mut expire = command("PEXPIRE", &key);
        expire.arg(i64::try_from(micros(lasts) / 1_000).unwrap_or(i64::MAX).max(1));
        commands.push(expire);
        self.together(&key, commands).await
    }

    /// Removes what a scheduler told of itself, and the events of these entries of its.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Refused`].
    pub async fn retire_scheduler(&self, id: &str, entries: &[SchedulerEntry]) -> Result<(), Error> {
        let key = keys::scheduler(id);
        let mut index = command("ZREM", SCHEDULERS);
        index.arg(&key);
        self.link.call(Some(SCHEDULERS.as_bytes()), index, Kind::Write).await?;
        let histories = entries.iter().map(|entry| keys::scheduler_history(&entry.id));
        for key in histories.chain([key]) {
            self.link.call(Some(key.as_bytes()), command("DEL", &key), Kind::Write).await?;
        }
        Ok(())
    }

    /// Notes that an entry enqueued a task.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Refused`].
    pub async fn record_enqueue_event(
        &self,
        entry_id: &str,
        event: &SchedulerEnqueueEvent,
    ) -> Result<(), Error> {
        let key = keys::scheduler_history(entry_id);
        let at = event.enqueue_time.as_ref().map_or_else(|| self.time.now().as_secs(), |time| time.seconds);
        let mut add = command("ZADD", &key);
        add.arg(at).arg(event.to_bytes());
        let mut trim = command("ZREMRANGEBYRANK", &key);
        trim.arg(0).arg(-EVENTS_MAX - 1);
        let mut expire = command("PEXPIRE", &key);
        expire.arg(i64::try_from(EVENTS_FOR.as_millis()).unwrap_or(i64::MAX));
        self.together(&key, vec![add, trim, expire]).await
    }

    /// The schedulers that live, ours and those of Go programs. Entries that cannot be read are left out, as asynq does.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Refused`].
    pub async fn schedulers(&self) -> Result<Vec<Scheduler>, Error> {
        let mut members = command("ZRANGEBYSCORE", SCHEDULERS);
        members.arg(self.time.now().as_secs()).arg("+inf");
        let answer = self.link.call(Some(SCHEDULERS.as_bytes()), members, Kind::Read).await?;
        let mut schedulers = Vec::new();
        for key in values(answer).into_iter().filter_map(|key| String::from_utf8(key).ok()) {
            let mut range = command("LRANGE", &key);
            range.arg(0).arg(-1);
            let entries = values(self.link.call(Some(key.as_bytes()), range, Kind::Read).await?);
            let entries: Vec<_> =
                entries.iter().rev().filter_map(|entry| SchedulerEntry::from_bytes(entry).ok()).collect();
            let id = keys::scheduler_id(&key);
            if let Some(id) = id.filter(|_| !entries.is_empty()) {
                schedulers.push(Scheduler { id: id.to_owned(), entries });
            }
        }
        Ok(schedulers)
    }

    /// When an entry enqueued, latest first, at most `limit` times.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Refused`].
    pub async fn enqueue_events(
        &self,
        entry_id: &str,
        limit: u32,
    ) -> Result<Vec<SchedulerEnqueueEvent>, Error> {
        let key = keys::scheduler_history(entry_id);
        let mut range = command("ZREVRANGE", &key);
        range.arg(0).arg(i64::from(limit) - 1);
        if limit == 0 {
            return Ok(Vec::new());
        }
        let events = values(self.link.call(Some(key.as_bytes()), range, Kind::Read).await?);
        Ok(events.iter().filter_map(|event| SchedulerEnqueueEvent::from_bytes(event).ok()).collect())
    }

    /// Runs commands on one key as one step.
    async fn together(&self, key: &str, commands: Vec<Cmd>) -> Result<(), Error> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("MULTI");
        for command in commands {
            pipeline.add_command(command);
        }
        pipeline.cmd("EXEC");
        for answer in self.link.pipeline(Some(key.as_bytes()), pipeline, Kind::Write).await? {
            answer?;
        }
        Ok(())
    }
}

/// asynq's own inspector panics on an option without its parenthesis, and so does every screen that is built upon it.
fn options_can_be_read(entry: &SchedulerEntry) -> Result<(), Error> {
    let is_call = |option: &str| option.find('(').is_some_and(|at| at > 0) && option.ends_with(')');
    match entry.enqueue_options.iter().find(|option| !is_call(option)) {
        None => Ok(()),
        Some(option) => Err(Error::Refused {
            why: format!(
                "option {option:?} of scheduler entry {:?} is written wrongly: expected a name and its value in parentheses, such as MaxRetry(3)",
                entry.id
            ),
        }),
    }
}

/// A time as messages carry it.
#[must_use]
pub fn wire_time(time: Timestamp) -> crate::wire::Timestamp {
    crate::servers::wire_time(time)
}

fn command(name: &str, key: &str) -> Cmd {
    let mut command = redis::cmd(name);
    command.arg(key);
    command
}

fn values(answer: Value) -> Vec<Vec<u8>> {
    crate::servers::values(answer)
}
