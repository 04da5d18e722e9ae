//! A task as an operator sees it.
//!
//! Invariant: of a payload only the fields that the file lists under `shows` leave this crate in a view, and of a
//! result or the headers nothing does.

use std::collections::HashMap;

use poolwright_broker::ServerBeat;
use poolwright_core::{Class, State, TaskId, TaskKey, TaskRecord, Timestamp, TypeName};
use poolwright_registry::Topology;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{Action, times};

/// A task, without its payload. Serializes with RFC 3339 times; fields that its state does not use are left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TaskView {
    /// Its id.
    pub id: TaskId,
    /// Its queue, as the file calls it; as the store does when the file does not know it.
    pub queue: String,
    /// What it is.
    #[serde(rename = "type")]
    pub task_type: TypeName,
    /// Its state.
    pub state: State,
    /// What may be done with it now, most useful first.
    pub allowed_actions: &'static [Action],
    /// What the last failed attempt said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// What kind of trouble that was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error_class: Option<Class>,
    /// When that was.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "times::maybe")]
    pub last_failed_at: Option<Timestamp>,
    /// When it becomes pending, while it is scheduled or waits for its next try.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "times::maybe")]
    pub next_process_at: Option<Timestamp>,
    /// When it succeeded.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "times::maybe")]
    pub completed_at: Option<Timestamp>,
    /// Until when it is kept, once completed.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "times::maybe")]
    pub expires_at: Option<Timestamp>,
    /// After this time it is not tried any more.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "times::maybe")]
    pub deadline: Option<Timestamp>,
    /// Retries used.
    pub retried: u32,
    /// Retries allowed.
    pub max_retry: u32,
    /// Deferrals in a row: rate limits, lock conflicts, snoozes.
    #[serde(skip_serializing_if = "is_zero")]
    pub deferrals: u32,
    /// Leases that expired.
    #[serde(skip_serializing_if = "is_zero")]
    pub crashes: u32,
    /// It runs, and its lease has expired: its worker died or lost contact, and nobody took it over yet.
    #[serde(skip_serializing_if = "is_false")]
    pub is_orphaned: bool,
    /// Somebody asked for its end.
    #[serde(skip_serializing_if = "is_false")]
    pub cancel_requested: bool,
    /// When it was enqueued.
    #[serde(serialize_with = "times::one")]
    pub enqueued_at: Timestamp,
    /// When its present attempt began, while it runs.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "times::maybe")]
    pub started_at: Option<Timestamp>,
    /// Who runs it, as `host:pid`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// How far its handler said it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressView>,
    /// The payload fields that the file shows. They stand beside the fields above, whose names win.
    #[serde(flatten)]
    pub shown: Map<String, Value>,
}

/// How far a running handler says it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ProgressView {
    /// From 0 to 1.
    pub done: f64,
    /// A word about the step.
    pub note: String,
    /// When it was reported.
    #[serde(serialize_with = "times::one")]
    pub at: Timestamp,
}

/// Who runs what, by the heartbeats.
pub(crate) struct Workers(HashMap<TaskKey, String>);

impl Workers {
    pub(crate) fn of(servers: &[ServerBeat]) -> Self {
        let running = servers.iter().flat_map(|server| {
            let worker = format!("{}:{}", server.host, server.pid);
            server.tasks.iter().map(move |task| (task.key.clone(), worker.clone()))
        });
        Self(running.collect())
    }

    pub(crate) fn none() -> Self {
        Self(HashMap::new())
    }
}

/// The names that the view itself uses; a payload field of the same name is not shown.
const OWN: [&str; 21] = [
    "id",
    "queue",
    "type",
    "state",
    "allowed_actions",
    "last_error",
    "last_error_class",
    "last_failed_at",
    "next_process_at",
    "completed_at",
    "expires_at",
    "deadline",
    "retried",
    "max_retry",
    "deferrals",
    "crashes",
    "is_orphaned",
    "cancel_requested",
    "started_at",
    "worker",
    "progress",
];

/// The view of a task, by what the file says of its type.
pub(crate) fn task(topology: &Topology, task: &TaskRecord, workers: &Workers, now: Timestamp) -> TaskView {
    let is_active = task.state == State::Active;
    TaskView {
        id: task.key.id.clone(),
        queue: crate::queues::shown_name(topology, &task.key.queue),
        task_type: task.task_type.clone(),
        state: task.state,
        allowed_actions: Action::allowed(task.state, is_protected(topology, &task.task_type)),
        last_error: task.failed.as_ref().map(|failure| failure.error.to_string()),
        last_error_class: task.failed.as_ref().map(|failure| failure.class),
        last_failed_at: task.failed.as_ref().map(|failure| failure.at),
        next_process_at: task.due,
        completed_at: task.completed_at,
        expires_at: task.expires_at,
        deadline: task.deadline,
        retried: task.retried,
        max_retry: task.max_retry,
        deferrals: task.deferrals,
        crashes: task.crashes,
        is_orphaned: is_active && task.lease_until.is_some_and(|until| until < now),
        cancel_requested: task.cancel_requested,
        enqueued_at: task.enqueued_at,
        started_at: if is_active { task.started_at } else { None },
        worker: if is_active { workers.0.get(&task.key).cloned() } else { None },
        progress: task.progress.as_ref().map(|progress| ProgressView {
            done: progress.done,
            note: progress.note.clone(),
            at: progress.at,
        }),
        shown: shown(topology, &task.task_type, &task.payload),
    }
}

/// The whitelisted fields of a payload; nothing of one that is no JSON or of an unknown type.
pub(crate) fn shown(topology: &Topology, task_type: &TypeName, payload: &[u8]) -> Map<String, Value> {
    let Some(rules) = topology.task_type(task_type) else { return Map::new() };
    let Ok(json) = serde_json::from_slice(payload) else { return Map::new() };
    rules.shown(&json).into_iter().filter(|(name, _)| !is_own(name)).collect()
}

fn is_own(name: &str) -> bool {
    // The record knows better than the payload when it was enqueued.
    name == "enqueued_at" || OWN.contains(&name)
}

/// The file says that no cancel reaches tasks of this type.
pub(crate) fn is_protected(topology: &Topology, task_type: &TypeName) -> bool {
    topology.task_type(task_type).is_some_and(|rules| rules.protected)
}

// Serde hands these references to the fields.
fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolwright_core::task::Progress;
    use poolwright_core::{NewTask, QueueName};
    use std::collections::BTreeSet;

    /// A record with every field in use at once, which no state has.
    fn full() -> TaskRecord {
        let at = Timestamp::from_secs(1_000);
        let new = NewTask::new(
            QueueName::new("q").unwrap(),
            TaskId::new("a").unwrap(),
            TypeName::new("t").unwrap(),
            &b"{}"[..],
        );
        TaskRecord {
            key: new.key,
            task_type: new.task_type,
            state: State::Active,
            payload: new.payload,
            headers: new.headers,
            max_retry: 1,
            retried: 1,
            deferrals: 1,
            crashes: 1,
            timeout: new.timeout,
            deadline: Some(at),
            retention: new.retention,
            unique: None,
            subjects: vec![],
            scopes: vec![],
            tenant: None,
            enqueued_at: at,
            pending_since: Some(at),
            due: Some(at),
            started_at: Some(at),
            lease_until: Some(at),
            token: None,
            failed: Some(poolwright_core::task::Failure { class: Class::Transient, error: "x".into(), at }),
            completed_at: Some(at),
            expires_at: Some(at),
            result: None,
            progress: Some(Progress { done: 0.5, note: "half".into(), at }),
            cancel_requested: true,
            runs_again: false,
        }
    }

    #[test]
    fn no_payload_field_can_take_the_name_of_a_field_of_the_view() {
        let topology = Topology::simple([("q", 1)]).task("t", "q").build().unwrap();
        let workers = Workers(HashMap::from([(full().key, "host:1".to_owned())]));
        let view = task(&topology, &full(), &workers, Timestamp::MAX);
        let json = serde_json::to_value(&view).unwrap();
        let names: BTreeSet<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
        let own: BTreeSet<&str> = OWN.into_iter().chain(["enqueued_at"]).collect();
        assert_eq!(names, own);
        assert!(names.iter().all(|name| is_own(name)) && !is_own("knowledge_id"));
    }
}
