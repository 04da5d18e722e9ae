//! Comparing what stores show, token for token left out: tokens are random, everything else must agree.

use poolwright_core::{NewTask, State, TaskRecord, Timestamp, Token};

/// The record with its token, if it has one, replaced by a fixed one.
#[must_use]
pub fn without_token(mut record: TaskRecord) -> TaskRecord {
    record.token = record.token.map(|_| Token::from_bytes([0; 16]));
    record
}

/// What differs between two values as `{:#?}` prints them, one line per difference; none when they agree.
///
/// A record of forty fields that differs in one is read at a glance this way.
#[must_use]
pub fn differences<T: std::fmt::Debug + PartialEq>(left: &T, right: &T) -> Option<String> {
    if left == right {
        return None;
    }
    let (left, right) = (format!("{left:#?}"), format!("{right:#?}"));
    let lines: Vec<String> = match left.lines().count() == right.lines().count() {
        true => left
            .lines()
            .zip(right.lines())
            .filter(|(l, r)| l != r)
            .map(|(l, r)| format!("  left  {}\n  right {}", l.trim(), r.trim()))
            .collect(),
        false => vec![format!("  left  {left}\n  right {right}")],
    };
    Some(lines.join("\n"))
}

/// Asserts that two records agree in everything but the value of their tokens.
///
/// # Panics
/// When they do not, naming the fields.
#[track_caller]
pub fn assert_same(seen: &TaskRecord, expected: &TaskRecord) {
    let (seen, expected) = (without_token(seen.clone()), without_token(expected.clone()));
    if let Some(text) = differences(&seen, &expected) {
        panic!("task {} is not as expected (left: seen, right: expected)\n{text}", seen.key);
    }
}

/// The record that a store must show for a task it has just taken: nothing has happened to it yet.
///
/// The due time is exact; a store with a coarser clock may round it up.
#[must_use]
pub fn fresh(task: &NewTask, now: Timestamp) -> TaskRecord {
    let due = task.when.due(now);
    TaskRecord {
        key: task.key.clone(),
        task_type: task.task_type.clone(),
        state: if due.is_some() { State::Scheduled } else { State::Pending },
        payload: task.payload.clone(),
        headers: task.headers.clone(),
        max_retry: task.max_retry,
        retried: 0,
        deferrals: 0,
        crashes: 0,
        timeout: task.timeout,
        deadline: task.deadline,
        retention: task.retention,
        unique: task.unique.clone(),
        subjects: task.subjects.clone(),
        scopes: task.scopes.clone(),
        tenant: task.tenant.clone(),
        enqueued_at: now,
        pending_since: due.is_none().then_some(now),
        due,
        started_at: None,
        lease_until: None,
        token: None,
        failed: None,
        completed_at: None,
        expires_at: None,
        result: None,
        progress: None,
        cancel_requested: false,
        runs_again: false,
    }
}
