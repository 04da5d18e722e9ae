//! From a request and the rules of its type to the task that is sent.
//!
//! Invariant: what the caller said wins over the rules of the type, and what either gets wrong is refused here.

use std::time::Duration;

use bytes::Bytes;
use md5::{Digest, Md5};
use poolwright_core::{Chance, NewTask, TaskId, Timestamp, TypeName, UniqueLock, When};
use poolwright_registry::{Error as RegistryError, TaskRules, Topology};
use serde_json::Value;

use crate::Error;
use crate::request::Options;

/// The shortest unique lock; Redis keeps whole seconds.
const UNIQUE_MIN: Duration = Duration::from_secs(1);

/// The task of this request. `now` is the store's time, `chance` makes its id if nobody names one.
pub(crate) fn build(
    topology: &Topology,
    now: Timestamp,
    chance: &Chance,
    task_type: &str,
    payload: Bytes,
    options: Options,
) -> Result<NewTask, Error> {
    let rules = rules(topology, task_type)?;
    if payload.len() > rules.payload_bytes_max {
        let (bytes, bytes_max) = (payload.len(), rules.payload_bytes_max);
        return Err(Error::PayloadTooLarge { task_type: task_type.to_owned(), bytes, bytes_max });
    }
    let queue = match &options.queue {
        Some(name) => topology.queue(name).ok_or_else(|| unknown_queue(topology, name))?,
        None => &rules.queue,
    };
    // A payload that is no JSON has no subjects, no scopes and no tenant; with an id template it is refused below.
    let json = if rules.reads_payload() {
        serde_json::from_slice(&payload).unwrap_or_default()
    } else {
        Value::Null
    };
    let id = match options.id {
        Some(id) => id?,
        None => rules.id(&json).map_err(no_id)?.unwrap_or_else(|| TaskId::fresh(now, chance)),
    };
    let when = when(options.when, rules.delay);
    let unique = unique(rules, &payload, options.unique_key, options.unique_for)?;
    let deadline = options.deadline.or_else(|| rules.deadline.map(|after| now + after));
    check_deadline(deadline, when.due(now).unwrap_or(now))?;

    let mut task = NewTask::new(queue.stored.clone(), id, rules.name.clone(), payload);
    task.headers = options.headers;
    task.when = when;
    task.max_retry = options.max_retry.unwrap_or(rules.max_retry);
    task.timeout = options.timeout.unwrap_or(*rules.timeout);
    task.deadline = deadline;
    task.retention = options.retention.unwrap_or(rules.retention);
    task.unique = unique;
    task.on_conflict = options.on_conflict.unwrap_or(rules.on_conflict);
    task.subjects = joined(rules.subjects(&json), options.subjects);
    task.scopes = joined(rules.scopes(&json), options.scopes);
    task.tenant = options.tenant.or_else(|| rules.tenant(&json));
    Ok(task)
}

fn rules<'t>(topology: &'t Topology, task_type: &str) -> Result<&'t TaskRules, Error> {
    match topology.require_type(task_type) {
        Ok(rules) => Ok(rules),
        Err(error) => {
            // A text that cannot be a type at all gets the reason why.
            TypeName::new(task_type)?;
            Err(Error::UnknownType { task_type: task_type.to_owned(), hint: hint(error) })
        }
    }
}

fn unknown_queue(topology: &Topology, name: &str) -> Error {
    let hint = topology.require_queue(name).err().map_or_else(String::new, hint);
    Error::UnknownQueue { queue: name.to_owned(), hint }
}

fn hint(error: RegistryError) -> String {
    match error {
        RegistryError::Unknown { hint, .. } => hint,
        _ => String::new(),
    }
}

fn no_id(error: RegistryError) -> Error {
    match error {
        RegistryError::MissingField { task_type, field, template } => {
            Error::IdField { task_type: task_type.to_string(), template, field }
        }
        RegistryError::InvalidId { source, .. } => Error::Name(source),
        other => unreachable!("an id is refused for a missing field or an invalid id, not for: {other}"),
    }
}

fn when(asked: Option<When>, delay: Duration) -> When {
    match asked.unwrap_or(When::After(delay)) {
        When::After(Duration::ZERO) => When::Now,
        other => other,
    }
}

/// asynq's key: the type and the MD5 of the payload's bytes, or the type alone when there is no payload.
fn unique(
    rules: &TaskRules,
    payload: &[u8],
    key: Option<String>,
    lasts: Option<Duration>,
) -> Result<Option<UniqueLock>, Error> {
    let lasts = match lasts.or(rules.unique_for) {
        Some(Duration::ZERO) => return Ok(None),
        Some(lasts) if lasts < UNIQUE_MIN => return Err(Error::UniqueTooShort { lasts }),
        Some(lasts) => lasts,
        None => return key.map_or(Ok(None), |key| Err(Error::UniqueWithoutTime { key })),
    };
    let suffix = key.unwrap_or_else(|| digest(payload));
    Ok(Some(UniqueLock::new(format!("{}:{suffix}", rules.name), lasts)))
}

fn digest(payload: &[u8]) -> String {
    use std::fmt::Write as _;
    if payload.is_empty() {
        return String::new();
    }
    Md5::digest(payload).iter().fold(String::with_capacity(32), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("a string takes all that is written");
        hex
    })
}

fn check_deadline(deadline: Option<Timestamp>, due: Timestamp) -> Result<(), Error> {
    match deadline {
        Some(deadline) if deadline <= due => Err(Error::DeadlinePassed { deadline, due }),
        _ => Ok(()),
    }
}

/// What the payload says, then what the caller adds, each once.
fn joined<T: PartialEq>(mut found: Vec<T>, added: Vec<T>) -> Vec<T> {
    for one in added {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

#[cfg(test)]
mod tests;
