//! Groups of Go producers: tasks that wait to be put together by a Go server.
//!
//! We put none together ourselves so far. They are shown, can be run, archived and deleted like others
//! ([`Inspect`](poolwright_broker::Inspect), by their id), and what a Go server took and did not finish goes back to its group,
//! see `promote.lua`.

use poolwright_broker::Error;
use poolwright_core::{QueueName, TaskRecord};
use redis::Value;

use crate::RedisStore;
use crate::keys::Keys;
use crate::link::Kind;
use crate::script::GROUP;

/// A group of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its name, as the producer gave it.
    pub name: String,
    /// How many tasks wait in it.
    pub waiting: u64,
}

impl RedisStore {
    /// The groups of a queue in which tasks wait, by name.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Refused`].
    pub async fn groups(&self, queue: &QueueName) -> Result<Vec<Group>, Error> {
        let keys = Keys::of(queue);
        let set = keys.groups();
        let mut command = redis::cmd("SMEMBERS");
        command.arg(&set);
        let answer = self.link.call(Some(set.as_bytes()), command, Kind::Read).await?;
        let Value::Array(names) = answer else { return Ok(Vec::new()) };
        let mut groups = Vec::with_capacity(names.len());
        for name in names {
            let Value::BulkString(name) = name else { continue };
            let Ok(name) = String::from_utf8(name) else { continue };
            let group = keys.group(&name);
            let mut count = redis::cmd("ZCARD");
            count.arg(&group);
            let waiting = match self.link.call(Some(group.as_bytes()), count, Kind::Read).await? {
                Value::Int(count) => u64::try_from(count).unwrap_or(0),
                _ => 0,
            };
            groups.push(Group { name, waiting });
        }
        groups.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(groups)
    }

    /// The tasks that wait in a group, at most `limit`, in the order in which they came. Their state is shown as scheduled,
    /// without a due time.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Refused`].
    pub async fn tasks_of_group(
        &self,
        queue: &QueueName,
        group: &str,
        limit: u32,
    ) -> Result<Vec<TaskRecord>, Error> {
        let keys = Keys::of(queue);
        let mut call = self.call(&GROUP);
        call.key(keys.group(group)).arg(keys.prefix().to_owned()).number(limit);
        let mut parts = self.run(call, Kind::Read).await?;
        self.records(queue, parts.list()?).await
    }
}
