//! Dead letters: looked at, replayed, deleted.
//!
//! Invariant: a replay that is interrupted between its two stores is found again, not done again: the first replay of
//! a letter has an id that follows from the letter.

use std::fmt;
use std::sync::Arc;

use poolwright_broker::{Enqueued, Error as StoreError, How};
use poolwright_core::name::NAME_BYTES_MAX;
use poolwright_core::{Chance, Class, DeadLetter, NewTask, OnConflict, TaskId, Timestamp, TypeName};
use poolwright_ledger::{
    Error as LedgerError, Filter, Ledger, LetterId, ListRequest, Replayed, StoredLetter,
};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{Error, TaskInspector, queues, times, view};

/// The header of a replayed task that names the one that failed, as `queue/id`.
pub const REPLAY_OF: &str = "replay-of";

/// The dead letters of a ledger. Cloning is cheap.
#[derive(Clone)]
pub struct Letters {
    inspector: TaskInspector,
    ledger: Arc<dyn Ledger>,
    chance: Chance,
}

/// A dead letter, without its payload. Serializes with RFC 3339 times.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LetterView {
    /// Its number in the ledger.
    pub id: LetterId,
    /// The id of the task that failed.
    pub task_id: TaskId,
    /// Its queue, as the file calls it.
    pub queue: String,
    /// What it was.
    pub task_type: TypeName,
    /// The kind of trouble.
    pub class: Class,
    /// What was said.
    pub last_error: String,
    /// Attempts made.
    pub fail_count: u32,
    /// When it ended.
    #[serde(serialize_with = "times::one")]
    pub failed_at: Timestamp,
    /// What kind of thing the failure touches at the widest; `unknown` when the payload does not say.
    pub scope: String,
    /// Which one.
    pub scope_id: String,
    /// Whom it was done for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// The last replay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed: Option<ReplayView>,
    /// The payload fields that the file shows.
    pub shown: Map<String, Value>,
}

/// A replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReplayView {
    /// The task that carries the work on.
    pub task_id: TaskId,
    /// Its queue, as the file calls it.
    pub queue: String,
    /// When it was enqueued.
    #[serde(serialize_with = "times::one")]
    pub at: Timestamp,
}

/// A page of letters, newest first.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LetterListing {
    /// The letters.
    pub letters: Vec<LetterView>,
    /// Pass it as `before` to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<LetterId>,
}

/// What replaying many letters came to.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ReplayReport {
    /// Letters whose work goes on.
    pub replayed: u64,
    /// Letters that were refused, each with its reason; they are as they were.
    pub refused: Vec<(LetterId, Error)>,
}

impl Letters {
    pub(crate) fn new(inspector: TaskInspector, ledger: Arc<dyn Ledger>) -> Self {
        Self { inspector, ledger, chance: Chance::from_entropy() }
    }

    /// A page of letters, newest first.
    ///
    /// # Errors
    /// [`Error::Ledger`].
    pub async fn list(&self, request: ListRequest) -> Result<LetterListing, Error> {
        let page = self.ledger.list(request).await?;
        let letters = page.letters.iter().map(|stored| self.view(stored)).collect();
        Ok(LetterListing { letters, next: page.next })
    }

    /// How many match.
    ///
    /// # Errors
    /// [`Error::Ledger`].
    pub async fn count(&self, filter: Filter) -> Result<u64, Error> {
        Ok(self.ledger.count(filter).await?)
    }

    /// One letter.
    ///
    /// # Errors
    /// [`Error::Ledger`], with `NoLetter` when there is none.
    pub async fn show(&self, id: LetterId) -> Result<LetterView, Error> {
        Ok(self.view(&self.raw(id).await?))
    }

    /// One letter with everything, payload and headers included: for programs, not for screens.
    ///
    /// # Errors
    /// [`Error::Ledger`], with `NoLetter` when there is none.
    pub async fn raw(&self, id: LetterId) -> Result<StoredLetter, Error> {
        self.ledger.letter(id).await?.ok_or_else(|| LedgerError::NoLetter(id).into())
    }

    /// Enqueues the work of a letter again: same type, payload, subjects and scopes, retries counted anew by the
    /// present rules of its type, in the type's present queue. The new task carries the header [`REPLAY_OF`], the
    /// letter the new task's key. The failed task itself stays in the archive.
    ///
    /// A type that runs one at a time (an `id` template and an `on_conflict` other than `reject`) keeps its id, so
    /// that a replay never runs beside another one.
    ///
    /// # Errors
    /// [`Error::Replayed`] when it was replayed before; [`Error::Store`], [`Error::Ledger`].
    pub async fn replay(&self, id: LetterId) -> Result<Enqueued, Error> {
        let stored = self.raw(id).await?;
        if let Some(Replayed { task, .. }) = stored.replayed {
            return Err(Error::Replayed { letter: id, task });
        }
        self.carry_on(&stored, first_id(&stored.letter)).await
    }

    /// As [`Letters::replay`], also when it was replayed before.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Ledger`].
    pub async fn replay_again(&self, id: LetterId) -> Result<Enqueued, Error> {
        let stored = self.raw(id).await?;
        let next = match stored.replayed {
            Some(_) => TaskId::fresh(self.inspector.broker.now(), &self.chance),
            None => first_id(&stored.letter),
        };
        self.carry_on(&stored, next).await
    }

    /// Replays every letter that matches and was not replayed yet, newest first.
    ///
    /// # Errors
    /// [`Error::Ledger`] when the letters cannot be listed; what was replayed until then stays so.
    pub async fn replay_all(&self, filter: Filter) -> Result<ReplayReport, Error> {
        let filter = Filter { unreplayed: true, ..filter };
        let mut report = ReplayReport::default();
        let mut before = None;
        loop {
            let request = ListRequest { filter: filter.clone(), before, limit: 0 };
            let page = self.ledger.list(request).await?;
            for stored in &page.letters {
                match self.carry_on(stored, first_id(&stored.letter)).await {
                    Ok(_) => report.replayed += 1,
                    Err(error) => report.refused.push((stored.id, error)),
                }
            }
            match page.next {
                Some(next) => before = Some(next),
                None => return Ok(report),
            }
        }
    }

    /// Deletes a letter; false when it was not there. The failed task stays in the archive.
    ///
    /// # Errors
    /// [`Error::Ledger`].
    pub async fn delete(&self, id: LetterId) -> Result<bool, Error> {
        Ok(self.ledger.delete_letter(id).await?)
    }

    /// Enqueues the work under this id, and notes that in the letter.
    async fn carry_on(&self, stored: &StoredLetter, id: TaskId) -> Result<Enqueued, Error> {
        let task = self.again(&stored.letter, &id);
        let outcome = self.inspector.broker.enqueue(vec![task]).await?.pop();
        let enqueued = match outcome.expect("a store answers with one outcome for each task") {
            Ok(enqueued) => enqueued,
            // The replay that was interrupted: it was enqueued, and only its mark is missing.
            Err(StoreError::DuplicateId { key, state }) if key.id == id && stored.replayed.is_none() => {
                Enqueued { key, state, how: How::Stored }
            }
            Err(error) => return Err(error.into()),
        };
        let replayed = Replayed { task: enqueued.key.clone(), at: self.inspector.broker.now() };
        self.ledger.mark_replayed(stored.id, replayed).await?;
        Ok(enqueued)
    }

    fn again(&self, letter: &DeadLetter, id: &TaskId) -> NewTask {
        let rules = self.inspector.topology.task_type(&letter.task_type);
        let queue = rules.map_or(&letter.task.queue, |rules| &rules.queue.stored);
        let mut task =
            NewTask::new(queue.clone(), id.clone(), letter.task_type.clone(), letter.payload.clone());
        if let Some(rules) = rules {
            task.max_retry = rules.max_retry;
            task.timeout = *rules.timeout;
            task.retention = rules.retention;
            if rules.id_template().is_some() && rules.on_conflict != OnConflict::Reject {
                task.key.id = letter.task.id.clone();
                task.on_conflict = rules.on_conflict;
            }
        }
        task.headers = letter.headers.clone();
        task.headers.insert(REPLAY_OF.to_owned(), letter.task.to_string());
        task.subjects = letter.subjects.clone();
        task.scopes = letter.scopes.clone();
        task.tenant = letter.tenant.clone();
        task
    }

    fn view(&self, stored: &StoredLetter) -> LetterView {
        let (topology, letter) = (&self.inspector.topology, &stored.letter);
        let (scope, scope_id) = letter.reach();
        LetterView {
            id: stored.id,
            task_id: letter.task.id.clone(),
            queue: queues::shown_name(topology, &letter.task.queue),
            task_type: letter.task_type.clone(),
            class: letter.class,
            last_error: letter.error.to_string(),
            fail_count: letter.attempts,
            failed_at: letter.failed_at,
            scope: scope.to_owned(),
            scope_id: scope_id.to_owned(),
            tenant_id: letter.tenant.as_ref().map(ToString::to_string),
            replayed: stored.replayed.as_ref().map(|replayed| ReplayView {
                task_id: replayed.task.id.clone(),
                queue: queues::shown_name(topology, &replayed.task.queue),
                at: replayed.at,
            }),
            shown: view::shown(topology, &letter.task_type, &letter.payload),
        }
    }
}

/// The id of the first replay. It follows from the attempt that the letter is about, which is unique for ever.
fn first_id(letter: &DeadLetter) -> TaskId {
    let text = match letter.token {
        Some(token) => format!("replay-{token}"),
        None => format!("replay-{}-{}", letter.failed_at.as_micros(), letter.task.id),
    };
    let bytes = text.floor_char_boundary(NAME_BYTES_MAX);
    TaskId::new(&text[..bytes]).expect("a prefix of an id behind a number is an id")
}

impl fmt::Debug for Letters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Letters").field("ledger", &self.ledger.describe()).finish_non_exhaustive()
    }
}
