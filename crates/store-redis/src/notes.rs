//! The header in which a task carries what asynq's message has no field for: `poolwright`, a line a note.
//!
//! ```text
//! s:knowledge/kn_42              a subject; its entry of the index is `asynq:{q}:subject:knowledge/kn_42`
//! c:knowledge_base/kb_7          a scope; its entry is `asynq:{q}:scope:knowledge_base/kb_7`
//! tenant:acme
//! timeout:7250000                exact times where whole seconds do not tell them, in microseconds
//! ```
//!
//! A header and not a field of the hash: that would cost a pending task a hundred bytes. asynq since 0.26 carries headers along;
//! its earlier workers drop them when they retry a task.
//!
//! Invariant: values hold no control characters (they are escaped as `%0A`), so a line is a note.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use poolwright_core::{NewTask, Scope, Subject, Tenant, Timestamp};
use uuid::Uuid;

/// The name of the header.
pub(crate) const HEADER: &str = "poolwright";

/// What the notes of a task say.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Notes {
    pub(crate) subjects: Vec<Subject>,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) tenant: Option<Tenant>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) retention: Option<Duration>,
    pub(crate) lasts: Option<Duration>,
    pub(crate) max_retry: Option<u32>,
}

/// The entry of the index for a subject, as its key ends.
pub(crate) fn subject_entry(subject: &Subject) -> String {
    format!("subject:{}", pair(&subject.kind, &subject.id))
}

/// The entry of the index for a scope.
pub(crate) fn scope_entry(scope: &Scope) -> String {
    format!("scope:{}", pair(&scope.kind, &scope.id))
}

/// The entries of the index for a task, a line each.
pub(crate) fn entries(subjects: &[Subject], scopes: &[Scope]) -> String {
    let entries = subjects.iter().map(subject_entry).chain(scopes.iter().map(scope_entry));
    entries.collect::<Vec<_>>().join("\n")
}

/// An id in the index: a UUID as its 16 bytes behind a 1, which no other id begins with. The scripts do the same.
pub(crate) fn member(id: &str) -> Bytes {
    let is_written_alike = id.len() == 36 && !id.bytes().any(|byte| byte.is_ascii_uppercase());
    match Uuid::try_parse(id).ok().filter(|_| is_written_alike) {
        Some(id) => [&[1], &id.as_bytes()[..]].concat().into(),
        None => Bytes::copy_from_slice(id.as_bytes()),
    }
}

fn pair(kind: &str, id: &str) -> String {
    // The kind alone must not hold the slash that ends it.
    format!("{}/{}", escape(kind, &['/']), escape(id, &[]))
}

/// The notes of a new task, '' when it has none.
pub(crate) fn write(task: &NewTask, with_lock: bool) -> String {
    let subjects = task.subjects.iter().map(|subject| format!("s:{}", pair(&subject.kind, &subject.id)));
    let scopes = task.scopes.iter().map(|scope| format!("c:{}", pair(&scope.kind, &scope.id)));
    let mut lines: Vec<String> = subjects.chain(scopes).collect();
    lines.extend(task.tenant.as_ref().map(|tenant| format!("tenant:{}", escape(&tenant.0, &[]))));
    let mut note = |name: &str, micros: u128| lines.push(format!("{name}:{micros}"));
    if task.timeout.subsec_nanos() != 0 {
        note("timeout", task.timeout.as_micros());
    }
    if task.retention.subsec_nanos() != 0 {
        note("retention", task.retention.as_micros());
    }
    if let Some(lock) = task.unique.as_ref().filter(|_| with_lock) {
        note("lasts", lock.lasts.as_micros());
    }
    if i32::try_from(task.max_retry).is_err() {
        note("max_retry", task.max_retry.into());
    }
    if let Some(deadline) = task.deadline.filter(|at| at.as_micros() % 1_000_000 != 0 || at.as_micros() == 0)
    {
        lines.push(format!("deadline:{}", deadline.as_micros()));
    }
    lines.join("\n")
}

/// Reads notes; lines that are not known are passed over.
pub(crate) fn read(text: &str) -> Notes {
    let mut notes = Notes::default();
    for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let micros = || value.parse::<u128>().ok().map(duration);
        let pair = || value.split_once('/').map(|(kind, id)| (unescape(kind), unescape(id)));
        match name {
            "s" => notes.subjects.extend(pair().map(|(kind, id)| Subject::new(kind, id))),
            "c" => notes.scopes.extend(pair().map(|(kind, id)| Scope::new(kind, id))),
            "tenant" => notes.tenant = Some(Tenant(unescape(value))),
            "timeout" => notes.timeout = micros(),
            "retention" => notes.retention = micros(),
            "lasts" => notes.lasts = micros(),
            "max_retry" => notes.max_retry = value.parse().ok(),
            "deadline" => notes.deadline = value.parse().ok().map(Timestamp::from_micros),
            _ => {}
        }
    }
    notes
}

fn duration(micros: u128) -> Duration {
    let nanos = u32::try_from(micros % 1_000_000).unwrap_or(0) * 1_000;
    Duration::new(u64::try_from(micros / 1_000_000).unwrap_or(u64::MAX), nanos)
}

/// The headers of a task with ours among them. One of the user's that has its name (followed by any number of `'`) gets one
/// more `'`, which the way back takes away.
pub(crate) fn with_header(headers: &BTreeMap<String, String>, notes: String) -> BTreeMap<String, String> {
    let mut all: BTreeMap<_, _> =
        headers.iter().map(|(name, value)| (guarded(name), value.clone())).collect();
    if !notes.is_empty() {
        all.insert(HEADER.to_owned(), notes);
    }
    all
}

/// The user's headers and our notes.
pub(crate) fn without_header(headers: BTreeMap<String, String>) -> (BTreeMap<String, String>, Notes) {
    let mut notes = Notes::default();
    let mut users = BTreeMap::new();
    for (name, value) in headers {
        if name == HEADER {
            notes = read(&value);
        } else {
            users.insert(if is_guarded(&name) { name[..name.len() - 1].to_owned() } else { name }, value);
        }
    }
    (users, notes)
}

fn is_guarded(name: &str) -> bool {
    name.strip_prefix(HEADER).is_some_and(|rest| rest.chars().all(|c| c == '\''))
}

fn guarded(name: &str) -> String {
    if is_guarded(name) { format!("{name}'") } else { name.to_owned() }
}

fn escape(text: &str, also: &[char]) -> String {
    let is_plain = |c: char| c != '%' && !c.is_control() && !also.contains(&c);
    if text.chars().all(is_plain) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_plain(c) {
            out.push(c);
            continue;
        }
        for byte in c.encode_utf8(&mut [0; 4]).bytes() {
            write!(out, "%{byte:02X}").expect("a string takes all that is written to it");
        }
    }
    out
}

fn unescape(text: &str) -> Arc<str> {
    if !text.contains('%') {
        return text.into();
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| first == b'%') {
            Some(byte) => {
                out.push(byte);
                rest = &after[2..];
            }
            None => {
                out.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolwright_core::{QueueName, TaskId, TypeName, UniqueLock};

    fn task() -> NewTask {
        let (queue, id) = (QueueName::new("q").unwrap(), TaskId::new("a").unwrap());
        NewTask::new(queue, id, TypeName::new("t").unwrap(), "")
    }

    #[test]
    fn a_task_that_says_nothing_beyond_asynq_has_no_notes() {
        assert_eq!(write(&task(), true), "");
        assert!(with_header(&BTreeMap::new(), String::new()).is_empty());
    }

    #[test]
    fn notes_come_out_as_they_went_in() {
        let mut task = task();
        task.subjects = vec![Subject::new("a/b%", "c\nd/e"), Subject::new("", "é")];
        task.scopes = vec![Scope::new("base", "\0")];
        task.tenant = Some(Tenant("x\ny".into()));
        task.timeout = Duration::from_millis(7_250);
        task.deadline = Some(Timestamp::EPOCH);
        task.unique = Some(UniqueLock::new("k", Duration::from_micros(1_500_001)));
        task.max_retry = u32::MAX;
        let notes = read(&write(&task, true));
        assert_eq!(
            (&notes.subjects, &notes.scopes, &notes.tenant),
            (&task.subjects, &task.scopes, &task.tenant)
        );
        assert_eq!((notes.timeout, notes.deadline), (Some(task.timeout), task.deadline));
        assert_eq!(notes.lasts, Some(Duration::from_micros(1_500_001)));
        assert_eq!((notes.max_retry, notes.retention), (Some(u32::MAX), None));
        assert_eq!(read(&write(&task, false)).lasts, None);
    }

    #[test]
    fn a_users_header_of_our_name_is_kept_apart() {
        let users: BTreeMap<_, _> =
            ["poolwright", "poolwright'", "other"].map(|name| (name.to_owned(), name.to_owned())).into();
        let (back, notes) = without_header(with_header(&users, "tenant:x".to_owned()));
        assert_eq!(back, users);
        assert_eq!(notes.tenant, Some(Tenant("x".into())));
    }
}
