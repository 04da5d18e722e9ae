//! One task: what its hash says, and whether that fits together.

use std::collections::BTreeMap;

use poolwright_store_redis::wire::{TaskMessage, Wire};

use super::text;

const SECOND: i64 = 1_000_000;

/// Which fields a task may have in which states; those that are not here it may have in all.
const FIELDS: [(&str, &[&str]); 9] = [
    ("lease", &["active"]),
    ("seen", &["active"]),
    ("place", &["pending"]),
    ("pending_since", &["pending", "active"]),
    ("completed_at", &["completed"]),
    ("expires_at", &["completed"]),
    ("recorded", &["archived"]),
    ("cancel", &["pending", "active", "scheduled", "retry", "aggregating"]),
    ("again", &["pending", "active", "scheduled", "retry"]),
];

/// Those that it may have in all.
const FREE: [&str; 12] = [
    "msg",
    "state",
    "token",
    "enqueued_at",
    "deferrals",
    "crashes",
    "class",
    "failed_at",
    "progress",
    "result",
    "unique_key",
    "group",
];

/// The hash of a task.
pub(super) struct Task<'k> {
    fields: &'k BTreeMap<String, Vec<u8>>,
    message: Option<TaskMessage>,
}

impl<'k> Task<'k> {
    pub(super) fn new(fields: &'k BTreeMap<String, Vec<u8>>) -> Self {
        let message = fields.get("msg").and_then(|message| TaskMessage::from_bytes(message).ok());
        Self { fields, message }
    }

    /// The message can be understood.
    pub(super) const fn is_readable(&self) -> bool {
        self.message.is_some()
    }

    fn field(&self, name: &str) -> Option<String> {
        self.fields.get(name).map(|value| text(value))
    }

    fn number(&self, name: &str) -> Option<i64> {
        self.field(name)?.parse().ok()
    }

    fn state(&self) -> String {
        self.field("state").unwrap_or_default()
    }

    /// Where its id has to be; none where there is no task at all.
    pub(super) fn place(&self) -> Option<String> {
        self.fields.get("msg")?;
        match self.state().as_str() {
            "" => None,
            "aggregating" => Some(format!("g:{}", self.field("group").unwrap_or_default())),
            state => Some(state.to_owned()),
        }
    }

    /// Its number among those that were claimed.
    pub(super) fn claimed_as(&self) -> Option<i64> {
        let of_lease = self.field("lease").and_then(|lease| lease.split(' ').nth(2)?.parse().ok());
        of_lease.or_else(|| self.number("place"))
    }

    /// It may hold this lock.
    pub(super) fn holds(&self, lock: &str) -> bool {
        let of_message = self.message.as_ref().is_some_and(|message| message.unique_key == lock);
        let is_over = matches!(self.state().as_str(), "archived" | "completed");
        !is_over && (self.field("unique_key").is_some_and(|key| key == lock) || of_message)
    }

    /// The entries of the index that it has to be in.
    pub(super) fn entries(&self) -> Vec<String> {
        let headers = self.message.iter().flat_map(|message| &message.headers);
        let ours = headers.filter(|header| header.name.as_deref() == Some("poolwright"));
        let notes = ours.filter_map(|header| header.value.as_deref()).flat_map(str::lines);
        let entry = |note: &str| {
            let subject = note.strip_prefix("s:").map(|rest| format!("subject:{rest}"));
            subject.or_else(|| note.strip_prefix("c:").map(|rest| format!("scope:{rest}")))
        };
        notes.filter_map(entry).collect()
    }

    /// What does not fit; `score` tells the task's score in a set.
    pub(super) fn faults(&self, score: impl Fn(&str) -> Option<i64>) -> Vec<String> {
        let mut faults = Vec::new();
        if !self.fields.contains_key("msg") {
            let fields: Vec<&String> = self.fields.keys().collect();
            return vec![format!("has no message, and {fields:?}")];
        }
        let state = self.state();
        for name in self.fields.keys() {
            match FIELDS.iter().find(|(field, _)| field == name) {
                Some((_, states)) if states.contains(&state.as_str()) => {}
                Some(_) => faults.push(format!("is {state} and has {name}")),
                None if FREE.contains(&name.as_str()) => {}
                None => faults.push(format!("has a field that nobody knows: {name}")),
            }
        }
        let mut need = |of: &str, name: &str| {
            if state == of && !self.fields.contains_key(name) {
                faults.push(format!("is {state} and has no {name}"));
            }
        };
        need("pending", "pending_since");
        need("active", "token");
        need("active", "lease");
        if let Some(token) = self.fields.get("token").filter(|token| token.len() != 16) {
            faults.push(format!("has a token of {} bytes", token.len()));
        }
        faults.extend(self.untimely(&state, score));
        faults
    }

    /// Exact times that are not those of their scores.
    fn untimely(&self, state: &str, score: impl Fn(&str) -> Option<i64>) -> Option<String> {
        let till = || self.field("lease").and_then(|lease| lease.split(' ').next()?.parse::<i64>().ok());
        let up = |micros: i64| micros.div_euclid(SECOND) + i64::from(micros.rem_euclid(SECOND) > 0);
        let (set, exact) = match state {
            "active" => ("lease", till().map(up)),
            "completed" => ("completed", self.number("expires_at").map(up)),
            "archived" => ("archived", self.number("failed_at").map(|micros| micros.div_euclid(SECOND))),
            _ => return None,
        };
        let (exact, written) = (exact?, score(set)?);
        (exact != written).then(|| format!("is in {set} by {written}, and its own time is {exact}"))
    }
}
