//! [`Submit`]: many tasks a script, one round trip.

use std::collections::{HashSet, VecDeque};

use bytes::Bytes;
use poolwright_broker::{Enqueued, Error, How, Reply, Submit};
use poolwright_core::{NewTask, OnConflict, State, TaskId, TaskKey, When};

use crate::RedisStore;
use crate::keys::Keys;
use crate::link::Kind;
use crate::message::message;
use crate::notes::{self, member};
use crate::reply::Parts;
use crate::script::{Call, ENQUEUE};
use crate::store::Batch;
use crate::wire::Wire;

/// The most tasks of one script: a server does nothing else meanwhile.
const TASKS_MAX: usize = 500;

/// About the most bytes of one script's arguments.
const BYTES_MAX: usize = 4 << 20;

impl Submit for RedisStore {
    fn enqueue(&self, tasks: Vec<NewTask>) -> Reply<'_, Vec<Result<Enqueued, Error>>> {
        Box::pin(async move {
            let mut outcomes = Vec::with_capacity(tasks.len());
            let mut left = VecDeque::from(tasks);
            while !left.is_empty() {
                outcomes.extend(self.enqueue_together(portion(&mut left)).await?);
            }
            Ok(outcomes)
        })
    }
}

/// The first tasks, as many as one script takes.
fn portion(left: &mut VecDeque<NewTask>) -> Vec<NewTask> {
    let (mut bytes, mut count) = (0, 0);
    for task in left.iter().take(TASKS_MAX) {
        bytes += task.payload.len() + 200;
        if count > 0 && bytes > BYTES_MAX {
            break;
        }
        count += 1;
    }
    left.drain(..count).collect()
}

impl RedisStore {
    /// One call for these tasks; `resent` when one for them was perhaps done.
    pub(crate) async fn enqueue_some(
        &self,
        tasks: Vec<NewTask>,
        resent: bool,
    ) -> Result<Vec<Result<Enqueued, Error>>, Error> {
        let mut outcomes: Vec<Option<Result<Enqueued, Error>>> = tasks.iter().map(|_| None).collect();
        let batches = self.batches(tasks.into_iter().map(|task| (task.key.queue.clone(), task)));
        for batch in &batches {
            self.register(&batch.queues).await?;
        }
        for (batch, mut parts) in self.send_tasks(batches, resent).await? {
            for (at, _, task) in &batch.items {
                outcomes[*at] = Some(outcome(&task.key, &mut parts)?);
            }
            self.wake(&batch.queues, parts.list()?)?;
        }
        Ok(outcomes.into_iter().map(|outcome| outcome.expect("each task is in one batch")).collect())
    }

    /// Sends them, and once more where no answer came: then those of which the very same message is there were stored by the first.
    async fn send_tasks(
        &self,
        batches: Vec<Batch<NewTask>>,
        resent: bool,
    ) -> Result<Vec<(Batch<NewTask>, Parts)>, Error> {
        let again = batches.clone();
        match self.run_all(batches, Kind::Write, |batch| self.enqueue_call(batch, resent)).await {
            Err(error) if error.is_retryable() => {
                tracing::debug!(%error, "an enqueue got no answer and is sent again");
                self.run_all(again, Kind::Write, |batch| self.enqueue_call(batch, true)).await
            }
            done => done,
        }
    }

    fn enqueue_call(&self, batch: &Batch<NewTask>, resent: bool) -> Call {
        let mut call = self.call(&ENQUEUE);
        call.flag(!self.link.is_cluster()).flag(resent);
        call.number(i128::try_from(batch.queues.len()).unwrap_or(0));
        let keys: Vec<Keys> = batch.queues.iter().map(Keys::of).collect();
        for keys in &keys {
            call.key(keys.pending()).arg(keys.prefix().to_owned());
        }
        let mut met = HashSet::with_capacity(batch.items.len());
        for (_, number, task) in &batch.items {
            let is_first = met.insert((number, &task.key.id));
            write_task(&mut call, &keys[number - 1], *number, task, is_first);
        }
        call
    }
}

fn write_task(call: &mut Call, keys: &Keys, number: usize, task: &NewTask, is_first: bool) {
    let is_new = task.on_conflict == OnConflict::Reject && is_first;
    let is_plain = is_new && task.when == When::Now && task.unique.is_none();
    let entries = notes::entries(&task.subjects, &task.scopes);
    let kind = match (is_plain, entries.is_empty()) {
        (true, true) => "",
        (true, false) => "i",
        (false, _) => "+",
    };
    call.arg(format!("{number}{kind}"));
    call.arg(task.key.id.as_str().to_owned()).arg(message(keys, task, true).to_bytes());
    match kind {
        "+" => write_conditions(call, keys, task),
        "i" => {
            call.arg(member(task.key.id.as_str())).arg(entries);
        }
        _ => {}
    }
}

fn write_conditions(call: &mut Call, keys: &Keys, task: &NewTask) {
    let (when, time) = when(task.when);
    let lock = task.unique.as_ref();
    let needs_bare = task.on_conflict == OnConflict::RunAgain && lock.is_some();
    let on_conflict = match task.on_conflict {
        OnConflict::Reject => "reject",
        OnConflict::ReplaceFinished => "replace_finished",
        OnConflict::RunAgain => "run_again",
    };
    call.arg(when)
        .number(time)
        .arg(lock.map(|lock| keys.unique(&lock.key)).unwrap_or_default())
        .number(lock.map_or(0, |lock| micros(lock.lasts)))
        .arg(on_conflict)
        .arg(if needs_bare { Bytes::from(message(keys, task, false).to_bytes()) } else { Bytes::new() });
}

/// A time as scripts take it.
pub(crate) fn when(when: When) -> (&'static str, i128) {
    match when {
        When::Now => ("now", 0),
        When::After(delay) => ("after", micros(delay)),
        When::At(time) => ("at", time.as_micros().into()),
    }
}

/// Microseconds, at most what 64 bits hold.
pub(crate) fn micros(duration: std::time::Duration) -> i128 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX).into()
}

/// The state that a script names; `aggregating` waits, too.
pub(crate) fn state(word: &str) -> Result<State, Error> {
    match word {
        "aggregating" => Ok(State::Scheduled),
        word => word.parse().map_err(|_| Error::Corrupt { what: format!("a task's state is `{word}`") }),
    }
}

fn outcome(key: &TaskKey, answer: &mut Parts) -> Result<Result<Enqueued, Error>, Error> {
    let Some(mut parts) = answer.list_or_number()? else {
        return Ok(Ok(Enqueued { key: key.clone(), state: State::Pending, how: How::Stored }));
    };
    let (what, word, who) = (parts.text()?, parts.text()?, parts.text()?);
    let taken = |how| {
        let state = state(&word)?;
        Ok(Ok(Enqueued { key: key.clone(), state, how }))
    };
    match what.as_str() {
        "stored" => taken(How::Stored),
        "replaced" => taken(How::Replaced),
        "coalesced" => taken(How::Coalesced),
        "again" => taken(How::RunsAgain),
        "id" => Ok(Err(Error::DuplicateId { key: key.clone(), state: state(&word)? })),
        "wrong" => Ok(Err(Error::Corrupt { what: format!("the key of task {key} holds no task: {who}") })),
        "lock" => {
            let id = TaskId::new(who)
                .map_err(|error| Error::Corrupt { what: format!("a lock's holder: {error}") })?;
            Ok(Err(Error::DuplicateUnique { holder: TaskKey::new(key.queue.clone(), id) }))
        }
        other => Err(Error::Corrupt { what: format!("an enqueue was answered with `{other}`") }),
    }
}
