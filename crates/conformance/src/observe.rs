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
    text_differences(&format!("{left:#?}"), &format!("{right:#?}"))
}

/// The lines in which two texts differ; none when they agree.
///
/// Texts of as many lines are compared line by line; of others, all between the first and the last difference is shown.
#[must_use]
pub fn text_differences(left: &str, right: &str) -> Option<String> {
    let (left, right): (Vec<_>, Vec<_>) = (left.lines().collect(), right.lines().collect());
    let pairs = || left.iter().zip(&right);
    let show = |side: &str, lines: &[&str]| {
        lines.iter().map(|line| format!("  {side} {}\n", line.trim_end())).collect::<String>()
    };
    if left.len() == right.len() {
        let lines = pairs().filter(|(l, r)| l != r).map(|(l, r)| show("left ", &[l]) + &show("right", &[r]));
        return Some(lines.collect::<String>()).filter(|text| !text.is_empty());
    }
    let start = pairs().take_while(|(l, r)| l == r).count();
    let end = left.iter().rev().zip(right.iter().rev()).take_while(|(l, r)| l == r).count();
    let end = end.min(left.len().min(right.len()) - start);
    Some(show("left ", &left[start..left.len() - end]) + &show("right", &right[start..right.len() - end]))
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
/// The due time is exact; a store with a coarser clock may round it up. Written out, although stores may ask
/// [`TaskRecord::stored`]: what is expected must not come from what is examined.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_as_many_lines_are_compared_line_by_line() {
        assert_eq!(text_differences("a\nb\nc", "a\nb\nc"), None);
        assert_eq!(text_differences("a\nb\nc", "a\nx\nc").as_deref(), Some("  left  b\n  right x\n"));
    }

    #[test]
    fn of_texts_of_other_lengths_the_middle_is_shown() {
        assert_eq!(text_differences("a\nb\nc", "a\nc").as_deref(), Some("  left  b\n"));
        assert_eq!(text_differences("a\na", "a\na\na").as_deref(), Some("  right a\n"));
        assert_eq!(text_differences("", "a").as_deref(), Some("  right a\n"));
    }

    #[test]
    fn values_that_print_alike_are_alike() {
        assert_eq!(differences(&[1, 2], &[1, 2]), None);
        assert!(differences(&[1, 2], &[1, 3]).is_some_and(|text| text.contains("left      2")));
    }
}
