//! The name of every key and channel of the layout.
//!
//! Invariant: all keys of a queue carry its hash tag, `{queue}`, and so lie in one slot of a cluster.

use poolwright_core::{QueueName, State, TaskId};

/// The set of all queues that were ever enqueued to.
pub const QUEUES: &str = "asynq:queues";

/// Servers by the end of their life: members are the keys of their records.
pub const SERVERS: &str = "asynq:servers";

/// What servers run, by the end of their life: members are keys of hashes.
pub const WORKERS: &str = "asynq:workers";

/// Schedulers by the end of their life: members are keys of lists.
pub const SCHEDULERS: &str = "asynq:schedulers";

/// The channel on which the id of a task is published whose end somebody wants.
pub const CANCEL_CHANNEL: &str = "asynq:cancel";

/// Our processes by the end of their record: members are their ids.
pub const PROCESSES: &str = "poolwright:servers";

/// The channel on which our processes say which task somebody wants to end, with its queue: `queue NUL id`.
pub const OWN_CANCEL_CHANNEL: &str = "poolwright:cancel";

/// The keys of one queue.
///
/// ```
/// use poolwright_core::{QueueName, TaskId};
/// use poolwright_store_redis::keys::Keys;
///
/// let keys = Keys::of(&QueueName::new("default")?);
/// assert_eq!(keys.pending(), "asynq:{default}:pending");
/// assert_eq!(keys.task(&TaskId::new("a1")?), "asynq:{default}:t:a1");
/// # Ok::<(), poolwright_core::name::NameError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    prefix: String,
}

macro_rules! keys {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal;)+) => {
        $($(#[doc = $doc])+ #[must_use] pub fn $name(&self) -> String {
            format!(concat!("{}", $text), self.prefix)
        })+
    };
}

impl Keys {
    /// The keys of this queue.
    #[must_use]
    pub fn of(queue: &QueueName) -> Self {
        Self { prefix: format!("asynq:{{{queue}}}:") }
    }

    /// What all of them begin with.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    keys! {
        /// List of ids that wait for a worker; the next one to run is at the right end.
        pending = "pending";
        /// List of ids that run; the one claimed last is at the left end.
        active = "active";
        /// Ids that run, by the end of their lease in seconds.
        lease = "lease";
        /// Ids that wait for their time, by it, in seconds.
        scheduled = "scheduled";
        /// Ids that wait for their next attempt, by its time, in seconds.
        retry = "retry";
        /// Ids that failed for good, by when they did, in seconds.
        archived = "archived";
        /// Ids that succeeded and are kept, by the end of that, in seconds.
        completed = "completed";
        /// There while the queue is paused: since when, in seconds.
        paused = "paused";
        /// How many attempts have ended that count.
        processed = "processed";
        /// How many of them failed.
        failed = "failed";
        /// The set of groups that have tasks waiting.
        groups = "groups";
        /// Full keys of the sets that are being aggregated, by deadline in seconds.
        aggregation_sets = "aggregation_sets";
    }

    /// The list or set of the tasks in a state.
    #[must_use]
    pub fn list(&self, state: State) -> String {
        format!("{}{state}", self.prefix)
    }

    /// An entry of the index: `subject:kind/id` or `scope:kind/id`.
    #[must_use]
    pub fn index(&self, entry: &str) -> String {
        format!("{}{entry}", self.prefix)
    }

    /// A task's hash, a lock or an entry of the index: what hangs on a task and has no list that ends it.
    #[must_use]
    pub fn is_beside_a_task(&self, key: &str) -> bool {
        let rest = key.strip_prefix(self.prefix.as_str()).unwrap_or_default();
        ["t:", "unique:", "subject:", "scope:"].iter().any(|kind| rest.starts_with(kind))
    }

    /// The hash of a task.
    #[must_use]
    pub fn task(&self, id: &TaskId) -> String {
        format!("{}t:{id}", self.prefix)
    }

    /// The lock that a unique task holds. What asynq makes is `type:md5`; a payload that is not there leaves the colon.
    #[must_use]
    pub fn unique(&self, key: &str) -> String {
        format!("{}unique:{key}", self.prefix)
    }

    /// What was counted as processed on a day of the form `2026-11-30`, UTC.
    #[must_use]
    pub fn processed_on(&self, date: &str) -> String {
        format!("{}processed:{date}", self.prefix)
    }

    /// What was counted as failed on that day.
    #[must_use]
    pub fn failed_on(&self, date: &str) -> String {
        format!("{}failed:{date}", self.prefix)
    }

    /// Ids that wait in a group, by when they came, in seconds.
    #[must_use]
    pub fn group(&self, group: &str) -> String {
        format!("{}g:{group}", self.prefix)
    }

    /// One set of a group that is being aggregated.
    #[must_use]
    pub fn aggregation_set(&self, group: &str, set: &str) -> String {
        format!("{}g:{group}:{set}", self.prefix)
    }

    /// The group that a set was taken from; none when the key is no set of this queue. A group's name may hold colons.
    #[must_use]
    pub fn group_of<'k>(&self, set: &'k str) -> Option<&'k str> {
        let rest = set.strip_prefix(self.prefix.as_str())?.strip_prefix("g:")?;
        rest.rsplit_once(':').map(|(group, _)| group)
    }
}

/// The record of a server.
#[must_use]
pub fn server(host: &str, pid: u32, server_id: &str) -> String {
    format!("asynq:servers:{{{host}:{pid}:{server_id}}}")
}

/// What a server runs.
#[must_use]
pub fn workers(host: &str, pid: u32, server_id: &str) -> String {
    format!("asynq:workers:{{{host}:{pid}:{server_id}}}")
}

/// What the server with this record runs.
#[must_use]
pub fn workers_beside(server: &str) -> String {
    server.replacen(SERVERS, WORKERS, 1)
}

/// Our record of a process.
#[must_use]
pub fn process(id: &str) -> String {
    format!("poolwright:server:{{{id}}}")
}

/// The entries of a scheduler; its id is `host:pid:uuid`.
#[must_use]
pub fn scheduler(scheduler_id: &str) -> String {
    format!("asynq:schedulers:{{{scheduler_id}}}")
}

/// The id of the scheduler whose entries this key holds.
#[must_use]
pub fn scheduler_id(key: &str) -> Option<&str> {
    key.strip_prefix(SCHEDULERS)?.strip_prefix(":{")?.strip_suffix('}')
}

/// When a scheduler's entry enqueued.
#[must_use]
pub fn scheduler_history(entry_id: &str) -> String {
    format!("asynq:scheduler_history:{entry_id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        Keys::of(&QueueName::new("default").unwrap())
    }

    #[test]
    fn all_keys_of_a_queue_are_those_of_asynq() {
        let keys = keys();
        let id = TaskId::new("7837f142-6337-4217-9276-8f27281b67d1").unwrap();
        for (key, end) in [
            (keys.pending(), "pending"),
            (keys.active(), "active"),
            (keys.lease(), "lease"),
            (keys.scheduled(), "scheduled"),
            (keys.retry(), "retry"),
            (keys.archived(), "archived"),
            (keys.completed(), "completed"),
            (keys.paused(), "paused"),
            (keys.processed(), "processed"),
            (keys.failed(), "failed"),
            (keys.processed_on("2026-11-30"), "processed:2026-11-30"),
            (keys.failed_on("2026-11-30"), "failed:2026-11-30"),
            (keys.groups(), "groups"),
            (keys.group("g1"), "g:g1"),
            (keys.aggregation_set("g1", "s"), "g:g1:s"),
            (keys.aggregation_sets(), "aggregation_sets"),
            (keys.task(&id), "t:7837f142-6337-4217-9276-8f27281b67d1"),
            (keys.unique("t:"), "unique:t:"),
            (keys.unique("t:5d41402abc4b2a76b9719d911017c592"), "unique:t:5d41402abc4b2a76b9719d911017c592"),
        ] {
            assert_eq!(key, format!("asynq:{{default}}:{end}"));
        }
    }

    #[test]
    fn keys_of_servers_and_schedulers_carry_their_tag() {
        assert_eq!(server("h", 7, "s"), "asynq:servers:{h:7:s}");
        assert_eq!(workers("h", 7, "s"), "asynq:workers:{h:7:s}");
        assert_eq!(scheduler("h:7:u"), "asynq:schedulers:{h:7:u}");
        assert_eq!(scheduler_id("asynq:schedulers:{h:7:u}"), Some("h:7:u"));
        assert_eq!(scheduler_history("e"), "asynq:scheduler_history:e");
    }

    #[test]
    fn the_group_of_a_set_is_what_stands_before_the_last_colon() {
        let keys = keys();
        for group in ["g1", "a:b", ""] {
            assert_eq!(keys.group_of(&keys.aggregation_set(group, "0b1c")), Some(group));
        }
        for other in ["asynq:{other}:g:g1:s", "asynq:{default}:pending", "asynq:{default}:g:g1"] {
            assert_eq!(keys.group_of(other), None, "{other}");
        }
    }
}
