//! The messages of the layout, as asynq writes and reads them: proto3, fields in ascending order, defaults left out.
//!
//! Go copies what it knows into a struct of its own and encodes that again, so a field that it does not know is lost with the
//! first retry: whatever we need beyond these fields stands in headers or in fields of the task's hash, never in a message.
//!
//! Invariant: what is encoded here is what Go encodes, byte for byte, but for the order of map entries, which Go leaves to
//! chance and we sort.

use std::collections::BTreeMap;

use prost::Message;
pub use prost_types::Timestamp;

/// A message that does not decode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is no {what}: {source}")]
pub struct Error {
    what: &'static str,
    source: prost::DecodeError,
}

/// A message of the layout.
pub trait Wire: Message + Default {
    /// What it is, for messages to people.
    const WHAT: &'static str;

    /// As it is stored.
    #[must_use]
    fn to_bytes(&self) -> Vec<u8> {
        self.encode_to_vec()
    }

    /// Out of what is stored. Fields that are not known are passed over, as Go does.
    ///
    /// # Errors
    /// [`Error`]: the bytes are no such message, or text in it is no UTF-8.
    fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        Self::decode(bytes).map_err(|source| Error { what: Self::WHAT, source })
    }
}

macro_rules! wires {
    ($($type:ident = $what:literal,)+) => { $(impl Wire for $type { const WHAT: &'static str = $what; })+ };
}

wires! {
    TaskMessage = "task",
    ServerInfo = "server",
    WorkerInfo = "running task",
    SchedulerEntry = "scheduler entry",
    SchedulerEnqueueEvent = "scheduler event",
}

/// A task, in the field `msg` of its hash.
#[derive(Clone, PartialEq, Message)]
pub struct TaskMessage {
    /// The name of its type; never blank.
    #[prost(string, tag = "1")]
    pub task_type: String,
    /// Opaque. None and empty are the same here.
    #[prost(bytes = "bytes", tag = "2")]
    pub payload: prost::bytes::Bytes,
    /// Its id within its queue.
    #[prost(string, tag = "3")]
    pub id: String,
    /// The queue's stored name.
    #[prost(string, tag = "4")]
    pub queue: String,
    /// How many retries it has; 0: the first failure is its last.
    #[prost(int32, tag = "5")]
    pub retry: i32,
    /// How many it has used.
    #[prost(int32, tag = "6")]
    pub retried: i32,
    /// Text of the last failure.
    #[prost(string, tag = "7")]
    pub error_msg: String,
    /// Seconds that an attempt may take; 0: no limit.
    #[prost(int64, tag = "8")]
    pub timeout: i64,
    /// When it has to be done, in seconds since 1970; 0: whenever.
    #[prost(int64, tag = "9")]
    pub deadline: i64,
    /// The whole key of the lock that it holds; empty: it is not unique.
    #[prost(string, tag = "10")]
    pub unique_key: String,
    /// When it failed last, in seconds since 1970; 0: never.
    #[prost(int64, tag = "11")]
    pub last_failed_at: i64,
    /// Seconds that it is kept after its success; 0: not at all.
    #[prost(int64, tag = "12")]
    pub retention: i64,
    /// When it succeeded, in seconds since 1970; 0: not yet, or it was not kept.
    #[prost(int64, tag = "13")]
    pub completed_at: i64,
    /// The group that it waits in; empty: none.
    #[prost(string, tag = "14")]
    pub group_key: String,
    /// What travels with it. Peers before asynq 0.26 drop it when they encode the task again.
    #[prost(message, repeated, tag = "15")]
    pub headers: Vec<Header>,
}

/// An entry of the headers. Go writes both halves of a map's entry, empty or not, so neither is left out here.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Header {
    /// Its name.
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    /// What it says.
    #[prost(string, optional, tag = "2")]
    pub value: Option<String>,
}

/// The headers as a message holds them.
#[must_use]
pub fn headers(headers: BTreeMap<String, String>) -> Vec<Header> {
    headers.into_iter().map(|(name, value)| Header { name: Some(name), value: Some(value) }).collect()
}

/// The headers of a message; of two with one name the last counts.
#[must_use]
pub fn header_map(headers: Vec<Header>) -> BTreeMap<String, String> {
    let entry = |header: Header| (header.name.unwrap_or_default(), header.value.unwrap_or_default());
    headers.into_iter().map(entry).collect()
}

/// An entry of a server's queues.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct QueueWeight {
    /// The queue's stored name.
    #[prost(string, optional, tag = "1")]
    pub queue: Option<String>,
    /// Its weight.
    #[prost(int32, optional, tag = "2")]
    pub weight: Option<i32>,
}

/// A server, in its record.
#[derive(Clone, PartialEq, Message)]
pub struct ServerInfo {
    /// Name of its machine.
    #[prost(string, tag = "1")]
    pub host: String,
    /// Its process.
    #[prost(int32, tag = "2")]
    pub pid: i32,
    /// Its own id.
    #[prost(string, tag = "3")]
    pub server_id: String,
    /// How many tasks it runs at once.
    #[prost(int32, tag = "4")]
    pub concurrency: i32,
    /// Its queues and their weights.
    #[prost(message, repeated, tag = "5")]
    pub queues: Vec<QueueWeight>,
    /// It takes from a queue only when all weightier ones are empty.
    #[prost(bool, tag = "6")]
    pub strict_priority: bool,
    /// `active`, `stopped` or `closed`.
    #[prost(string, tag = "7")]
    pub status: String,
    /// When it started.
    #[prost(message, optional, tag = "8")]
    pub start_time: Option<Timestamp>,
    /// How many tasks it runs now.
    #[prost(int32, tag = "9")]
    pub active_worker_count: i32,
}

/// A task that a server runs.
#[derive(Clone, PartialEq, Message)]
pub struct WorkerInfo {
    /// Name of the machine.
    #[prost(string, tag = "1")]
    pub host: String,
    /// The process.
    #[prost(int32, tag = "2")]
    pub pid: i32,
    /// The server's id: screens join on it.
    #[prost(string, tag = "3")]
    pub server_id: String,
    /// Which task.
    #[prost(string, tag = "4")]
    pub task_id: String,
    /// Its type.
    #[prost(string, tag = "5")]
    pub task_type: String,
    /// Its payload, whole.
    #[prost(bytes = "bytes", tag = "6")]
    pub task_payload: prost::bytes::Bytes,
    /// Its queue.
    #[prost(string, tag = "7")]
    pub queue: String,
    /// When this attempt began.
    #[prost(message, optional, tag = "8")]
    pub start_time: Option<Timestamp>,
    /// When it has to end.
    #[prost(message, optional, tag = "9")]
    pub deadline: Option<Timestamp>,
}

/// An entry of a scheduler.
#[derive(Clone, PartialEq, Message)]
pub struct SchedulerEntry {
    /// Its id, new with every start of the scheduler.
    #[prost(string, tag = "1")]
    pub id: String,
    /// When it enqueues, as it was written.
    #[prost(string, tag = "2")]
    pub spec: String,
    /// What it enqueues.
    #[prost(string, tag = "3")]
    pub task_type: String,
    /// With which payload.
    #[prost(bytes = "bytes", tag = "4")]
    pub task_payload: prost::bytes::Bytes,
    /// With which options, each as `Name(argument)`. One without a parenthesis makes Go's inspector panic.
    #[prost(string, repeated, tag = "5")]
    pub enqueue_options: Vec<String>,
    /// When it enqueues next.
    #[prost(message, optional, tag = "6")]
    pub next_enqueue_time: Option<Timestamp>,
    /// When it has enqueued last; [`NEVER`] and not none, which Go reads as 1970.
    #[prost(message, optional, tag = "7")]
    pub prev_enqueue_time: Option<Timestamp>,
}

/// One enqueue of a scheduler's entry.
#[derive(Clone, PartialEq, Message)]
pub struct SchedulerEnqueueEvent {
    /// The task.
    #[prost(string, tag = "1")]
    pub task_id: String,
    /// When.
    #[prost(message, optional, tag = "2")]
    pub enqueue_time: Option<Timestamp>,
}

/// Go's zero time, the beginning of the year 1: how a time that has not been is written.
pub const NEVER: Timestamp = Timestamp { seconds: -62_135_596_800, nanos: 0 };

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp { seconds: 1_700_000_000, nanos: 123_456_789 };

    const fn secs(seconds: i64) -> Option<Timestamp> {
        Some(Timestamp { seconds, nanos: 0 })
    }

    /// Asserts that this is what Go wrote, and that it is read back whole.
    #[track_caller]
    fn assert_wire<T: Wire + PartialEq + std::fmt::Debug>(message: &T, golden: &str) {
        assert_eq!(hex(&message.to_bytes()), golden);
        let bytes: Vec<u8> = (0..golden.len() / 2)
            .map(|at| u8::from_str_radix(&golden[at * 2..at * 2 + 2], 16).unwrap())
            .collect();
        assert_eq!(&T::from_bytes(&bytes).unwrap(), message);
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn a_task_with_everything_is_as_go_writes_it() {
        let message = TaskMessage {
            task_type: "email:send".into(),
            payload: r#"{"user_id":42}"#.into(),
            id: "7837f142-6337-4217-9276-8f27281b67d1".into(),
            queue: "default".into(),
            retry: 25,
            retried: 2,
            error_msg: "boom".into(),
            timeout: 1_800,
            deadline: 1_700_003_600,
            unique_key: "asynq:{default}:unique:email:send:1181f89307fa271072c095747d5813cc".into(),
            last_failed_at: 1_700_000_000,
            retention: 3_600,
            completed_at: 1_700_000_100,
            group_key: "g1".into(),
            headers: headers([("trace".to_owned(), "abc".to_owned())].into()),
        };
        assert_wire(
            &message,
            "0a0a656d61696c3a73656e64120e7b22757365725f6964223a34327d1a2437383337663134322d363333372d343231372d39\
             3237362d386632373238316236376431220764656661756c74281930023a04626f6f6d40880e4890fecfaa0652426173796e\
             713a7b64656661756c747d3a756e697175653a656d61696c3a73656e643a3131383166383933303766613237313037326330\
             3935373437643538313363635880e2cfaa0660901c68e4e2cfaa06720267317a0c0a0574726163651203616263",
        );
    }

    #[test]
    fn a_task_leaves_out_what_is_not_said() {
        let message = TaskMessage {
            task_type: "t".into(),
            id: "id1".into(),
            queue: "default".into(),
            retry: 25,
            timeout: 1_800,
            ..TaskMessage::default()
        };
        assert_wire(&message, "0a01741a03696431220764656661756c74281940880e");
    }

    #[test]
    fn both_halves_of_a_header_are_written_empty_or_not() {
        let headers = headers([("k".to_owned(), String::new())].into());
        let message = TaskMessage { headers, ..TaskMessage::default() };
        assert_wire(&message, "7a050a016b1200");
        assert_eq!(header_map(message.headers), [("k".to_owned(), String::new())].into());
    }

    #[test]
    fn a_server_and_what_it_runs_are_as_go_writes_them() {
        let server = ServerInfo {
            host: "host1".into(),
            pid: 4_242,
            server_id: "srv-1".into(),
            concurrency: 10,
            queues: vec![QueueWeight { queue: Some("default".into()), weight: Some(3) }],
            strict_priority: true,
            status: "active".into(),
            start_time: Some(START),
            active_worker_count: 1,
        };
        assert_wire(
            &server,
            "0a05686f7374311092211a057372762d31200a2a0b0a0764656661756c74100330013a06616374697665420b0880e2cfaa0610\
             959aef3a4801",
        );
        let running = WorkerInfo {
            host: "host1".into(),
            pid: 4_242,
            server_id: "srv-1".into(),
            task_id: "id1".into(),
            task_type: "t".into(),
            task_payload: "p".into(),
            queue: "default".into(),
            start_time: Some(START),
            deadline: secs(1_700_001_800),
        };
        assert_wire(
            &running,
            "0a05686f7374311092211a057372762d3122036964312a01743201703a0764656661756c74420b0880e2cfaa0610959aef3a4a\
             060888f0cfaa06",
        );
    }

    #[test]
    fn a_scheduler_entry_that_never_ran_says_so_as_go_does() {
        let entry = SchedulerEntry {
            id: "e1".into(),
            spec: "@every 30s".into(),
            task_type: "t".into(),
            task_payload: "p".into(),
            enqueue_options: vec![r#"Queue("low")"#.into(), "MaxRetry(3)".into()],
            next_enqueue_time: secs(1_700_000_030),
            prev_enqueue_time: Some(NEVER),
        };
        assert_wire(
            &entry,
            "0a026531120a406576657279203330731a01742201702a0c517565756528226c6f7722292a0b4d617852657472792833293206\
             089ee2cfaa063a0b088092b8c398feffffff01",
        );
        let event = SchedulerEnqueueEvent { task_id: "id1".into(), enqueue_time: Some(START) };
        assert_wire(&event, "0a03696431120b0880e2cfaa0610959aef3a");
    }

    #[test]
    fn what_is_no_message_says_so_and_unknown_fields_are_passed_over() {
        let error = TaskMessage::from_bytes(b"\x0a\xffrubbish").unwrap_err();
        assert!(error.to_string().starts_with("this is no task: "), "{error}");
        let not_text = TaskMessage::from_bytes(b"\x0a\x01\xff").unwrap_err();
        assert!(not_text.to_string().contains("UTF-8"), "{not_text}");
        // Field 99, a number.
        let known = TaskMessage::from_bytes(b"\x0a\x01t\x98\x06\x07").unwrap();
        assert_eq!(known, TaskMessage { task_type: "t".into(), ..TaskMessage::default() });
    }
}
