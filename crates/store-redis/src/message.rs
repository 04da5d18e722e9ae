//! A new task as the message that asynq knows.

use std::time::Duration;

use poolwright_core::{NewTask, Timestamp};

use crate::keys::Keys;
use crate::notes;
use crate::wire::{self, TaskMessage};

/// The longest time that Go can hold in its nanoseconds, in seconds: 292 years.
const SECS_MAX: u64 = 9_223_372_036;

/// The message of a task; without its lock where another task holds that.
pub(crate) fn message(keys: &Keys, task: &NewTask, with_lock: bool) -> TaskMessage {
    let lock = task.unique.as_ref().filter(|_| with_lock);
    TaskMessage {
        task_type: task.task_type.as_str().to_owned(),
        payload: task.payload.clone(),
        id: task.key.id.as_str().to_owned(),
        queue: task.key.queue.as_str().to_owned(),
        retry: i32::try_from(task.max_retry).unwrap_or(i32::MAX),
        timeout: whole_secs(task.timeout),
        deadline: task.deadline.map_or(0, deadline_secs),
        unique_key: lock.map(|lock| keys.unique(&lock.key)).unwrap_or_default(),
        retention: whole_secs(task.retention),
        headers: wire::headers(notes::with_header(&task.headers, notes::write(task, with_lock))),
        ..TaskMessage::default()
    }
}

/// Whole seconds, rounded up: a part of a second is no "no limit".
fn whole_secs(duration: Duration) -> i64 {
    let secs = duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0));
    i64::try_from(secs.min(SECS_MAX)).unwrap_or(i64::MAX)
}

/// The second at which a time has come; never 0, which means none.
fn deadline_secs(time: Timestamp) -> i64 {
    let micros = time.as_micros();
    let secs = micros.div_euclid(1_000_000) + i64::from(micros.rem_euclid(1_000_000) > 0);
    if secs == 0 { 1 } else { secs }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Wire;
    use poolwright_core::{QueueName, TaskId, TypeName};

    fn task() -> NewTask {
        let (queue, id) = (QueueName::new("default").unwrap(), TaskId::new("id1").unwrap());
        NewTask::new(queue, id, TypeName::new("t").unwrap(), "")
    }

    #[test]
    fn a_plain_task_is_what_go_writes() {
        let keys = Keys::of(&QueueName::new("default").unwrap());
        let bytes = message(&keys, &task(), true).to_bytes();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "0a01741a03696431220764656661756c74281940880e");
    }

    #[test]
    fn times_are_whole_seconds_rounded_up() {
        assert_eq!(whole_secs(Duration::ZERO), 0);
        assert_eq!(whole_secs(Duration::from_micros(1)), 1);
        assert_eq!(whole_secs(Duration::MAX), 9_223_372_036);
        assert_eq!(deadline_secs(Timestamp::EPOCH), 1);
        assert_eq!(deadline_secs(Timestamp::from_micros(1_000_001)), 2);
        assert_eq!(deadline_secs(Timestamp::MAX), 9_223_372_036_855);
    }
}
