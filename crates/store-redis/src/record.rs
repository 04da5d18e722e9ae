//! A stored task as the contract shows it: out of its hash and its place in a list.
//!
//! | of the record | from |
//! | --- | --- |
//! | type, payload, limits, retries used | the message |
//! | subjects, scopes, tenant, exact limits | our header in it, see [`notes`] |
//! | state, token, lease, deferrals, crashes, result, progress | fields of the hash |
//! | exact times | fields of ours, where they agree with the seconds that everybody writes |
//! | due time | the score in the list |
//!
//! Invariant: a Go program may have changed the task last. A field of ours counts only where what Go writes agrees with it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use poolwright_broker::Error;
use poolwright_core::task::{Failure, Progress};
use poolwright_core::{
    Class, QueueName, State, TaskId, TaskKey, TaskRecord, Timestamp, Token, TypeName, UniqueLock,
};

use crate::keys::Keys;
use crate::notes::{self, Notes};
use crate::reply::Parts;
use crate::wire::{self, TaskMessage, Wire};

/// A task as a script shows it, not understood yet.
pub(crate) struct Shown {
    pub(crate) id: String,
    fields: Vec<(Bytes, Bytes)>,
    score: Option<i64>,
}

/// Why a stored task cannot be understood.
#[derive(Debug)]
pub(crate) struct Poison {
    pub(crate) id: String,
    pub(crate) message: Bytes,
    pub(crate) reason: String,
}

/// The attempt of a task that was just claimed; its fields are those from before.
pub(crate) struct Claimed {
    pub(crate) token: Token,
    pub(crate) started_at: Timestamp,
    pub(crate) lease_until: Timestamp,
}

impl Shown {
    /// Reads id, fields and score, as `show` in the scripts gives them.
    pub(crate) fn read(parts: &mut Parts) -> Result<Self, Error> {
        let (id, fields) = (parts.text()?, read_fields(parts.list()?)?);
        let score = parts.text()?;
        // Scores are whole seconds, but for those of a stranger.
        let score = score.parse::<f64>().ok().map(secs_of);
        Ok(Self { id, fields, score })
    }

    /// The fields from before a claim: message and waiting time, or a list where there are others.
    pub(crate) fn read_before(id: String, parts: &mut Parts) -> Result<Self, Error> {
        let fields = match parts.list_or_bytes()? {
            Ok(list) => {
                parts.bytes()?;
                read_fields(list)?
            }
            Err(message) => {
                let known =
                    [("msg", message), ("state", "pending".into()), ("pending_since", parts.bytes()?)];
                known.map(|(name, value)| (Bytes::from_static(name.as_bytes()), value)).into()
            }
        };
        Ok(Self { id, fields, score: None })
    }

    fn get(&self, name: &str) -> Option<&Bytes> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(|value| std::str::from_utf8(value).ok())
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.text(name).and_then(|text| text.parse().ok())
    }

    fn time(&self, name: &str) -> Option<Timestamp> {
        self.number(name).map(Timestamp::from_micros)
    }

    /// Understands the task.
    pub(crate) fn record(self, queue: &QueueName) -> Result<TaskRecord, Poison> {
        self.understand(queue).map_err(|reason| self.poison(reason))
    }

    /// Understands a task that was just claimed.
    pub(crate) fn claimed(self, queue: &QueueName, by: &Claimed) -> Result<TaskRecord, Poison> {
        let mut task = self.record(queue)?;
        task.state = State::Active;
        task.token = Some(by.token);
        task.started_at = Some(by.started_at);
        task.lease_until = Some(by.lease_until);
        (task.pending_since, task.progress, task.due) = (None, None, None);
        Ok(task)
    }

    fn poison(self, reason: String) -> Poison {
        let message = self.get("msg").cloned().unwrap_or_default();
        Poison { id: self.id, message, reason }
    }

    fn understand(&self, queue: &QueueName) -> Result<TaskRecord, String> {
        let message = self.get("msg").ok_or("there is no message")?;
        let message = TaskMessage::from_bytes(message).map_err(|error| error.to_string())?;
        let state = self.state()?;
        let (headers, notes) = notes::without_header(wire::header_map(message.headers.clone()));
        let id = TaskId::new(&self.id).map_err(|error| error.to_string())?;
        let mut task = TaskRecord {
            key: TaskKey::new(queue.clone(), id),
            task_type: TypeName::new(&message.task_type).map_err(|error| error.to_string())?,
            state,
            payload: message.payload.clone(),
            headers,
            max_retry: notes.max_retry.unwrap_or_else(|| u32::try_from(message.retry).unwrap_or(0)),
            retried: u32::try_from(message.retried).unwrap_or(0),
            deferrals: self.number("deferrals").unwrap_or(0),
            crashes: self.number("crashes").unwrap_or(0),
            timeout: notes.timeout.unwrap_or_else(|| duration(message.timeout)),
            deadline: deadline(&message, &notes),
            retention: notes.retention.unwrap_or_else(|| duration(message.retention)),
            unique: self.lock(queue, &message, &notes),
            subjects: notes.subjects,
            scopes: notes.scopes,
            tenant: notes.tenant,
            enqueued_at: self.enqueued_at(),
            pending_since: None,
            due: None,
            started_at: None,
            lease_until: None,
            token: self.token(),
            failed: self.failed(&message, state),
            completed_at: None,
            expires_at: None,
            result: self.get("result").cloned(),
            progress: self.text("progress").and_then(progress),
            // A Go worker that ended it knew no flag.
            cancel_requested: state.is_live() && self.get("cancel").is_some(),
            runs_again: self.get("again").is_some(),
        };
        self.place(&mut task, &message);
        Ok(task)
    }

    fn state(&self) -> Result<State, String> {
        match self.text("state") {
            // It waits in its group, as others wait for a time.
            Some("aggregating") => Ok(State::Scheduled),
            Some(word) => word.parse().map_err(|_| format!("its state is `{word}`")),
            None => Err("it has no state".to_owned()),
        }
    }

    /// What only its state uses.
    fn place(&self, task: &mut TaskRecord, message: &TaskMessage) {
        let score = self.score.map(Timestamp::from_secs);
        match task.state {
            State::Pending => task.pending_since = self.pending_since(),
            State::Scheduled | State::Retry => task.due = score,
            State::Active => {
                let own = self.text("lease").and_then(lease).filter(|(until, _)| self.agrees_up(*until));
                task.lease_until = own.map(|(until, _)| until).or(score);
                task.started_at = own.map(|(_, started)| started);
            }
            State::Archived => {}
            State::Completed => {
                let own = self.time("expires_at").filter(|at| self.agrees_up(*at));
                task.expires_at = own.or(score);
                let completed = self.time("completed_at").filter(|at| at.as_secs() == message.completed_at);
                task.completed_at = completed.or(Some(Timestamp::from_secs(message.completed_at)));
            }
        }
    }

    /// The score is the second at which this time has come.
    fn agrees_up(&self, time: Timestamp) -> bool {
        // A task that was just claimed has no score to compare with.
        self.score.is_none_or(|score| score == score_of(time))
    }

    fn pending_since(&self) -> Option<Timestamp> {
        self.text("pending_since").and_then(nanos)
    }

    fn enqueued_at(&self) -> Timestamp {
        let known = self.time("enqueued_at").or_else(|| self.pending_since());
        // What Go enqueued and has moved since tells it nowhere; the earliest that is known stands for it.
        known.or(self.score.map(Timestamp::from_secs)).unwrap_or(Timestamp::EPOCH)
    }

    fn token(&self) -> Option<Token> {
        let bytes: [u8; 16] = self.get("token")?.as_ref().try_into().ok()?;
        Some(Token::from_bytes(bytes))
    }

    fn lock(&self, queue: &QueueName, message: &TaskMessage, notes: &Notes) -> Option<UniqueLock> {
        let in_group = self.get("group").map(|_| message.unique_key.as_str());
        let key = self.text("unique_key").or(in_group)?;
        let key = key.strip_prefix(&Keys::of(queue).unique(""))?;
        Some(UniqueLock::new(key, notes.lasts.unwrap_or_default()))
    }

    fn failed(&self, message: &TaskMessage, state: State) -> Option<Failure> {
        let own = self.time("failed_at").filter(|at| at.as_secs() == message.last_failed_at);
        let class = self.text("class").and_then(|word| word.parse().ok()).filter(|_| own.is_some());
        if own.is_some() || message.last_failed_at != 0 {
            let at = own.unwrap_or_else(|| Timestamp::from_secs(message.last_failed_at));
            let error: Arc<str> = message.error_msg.as_str().into();
            return Some(Failure { class: class.unwrap_or(Class::Transient), error, at });
        }
        // asynq's inspector archives without a word.
        (state == State::Archived).then(|| Failure {
            class: Class::Operator,
            error: "archived by asynq's inspector".into(),
            at: Timestamp::from_secs(self.score.unwrap_or(0)),
        })
    }
}

/// The first whole second at which a time has come.
pub(crate) fn score_of(time: Timestamp) -> i64 {
    let micros = time.as_micros();
    micros.div_euclid(1_000_000) + i64::from(micros.rem_euclid(1_000_000) > 0)
}

fn read_fields(mut parts: Parts) -> Result<Vec<(Bytes, Bytes)>, Error> {
    let mut fields = Vec::with_capacity(parts.len() / 2);
    while parts.len() > 1 {
        fields.push((parts.bytes()?, parts.bytes()?));
    }
    Ok(fields)
}

fn nanos(text: &str) -> Option<Timestamp> {
    text.parse::<i64>().ok().map(|nanos| Timestamp::from_micros(nanos.div_euclid(1_000)))
}

/// Until when, and since when: the first two numbers.
fn lease(text: &str) -> Option<(Timestamp, Timestamp)> {
    let mut numbers = text.split(' ').map(|number| number.parse().map(Timestamp::from_micros));
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// `at done note`.
fn progress(text: &str) -> Option<Progress> {
    let mut parts = text.splitn(3, ' ');
    let at = Timestamp::from_micros(parts.next()?.parse().ok()?);
    let done = parts.next()?.parse().ok()?;
    Some(Progress { done, note: parts.next()?.to_owned(), at })
}

fn deadline(message: &TaskMessage, notes: &Notes) -> Option<Timestamp> {
    let secs = (message.deadline != 0).then(|| Timestamp::from_secs(message.deadline));
    notes.deadline.or(secs)
}

fn duration(secs: i64) -> Duration {
    Duration::from_secs(u64::try_from(secs).unwrap_or(0))
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "a cast of a float saturates, and a later time means never"
)]
fn secs_of(score: f64) -> i64 {
    score.ceil() as i64
}
