//! Dead letters and the library: a task that failed for good fails its document or its part of one, whichever road it
//! took there; and work that begins anew is written into the letters that it carries on.

use std::collections::HashMap;

use poolwright::core::{BoxFuture, DeadLetter, DeadLetterSink, TaskKey};
use poolwright::ledger::{Filter, ListRequest, Replayed};
use poolwright::prelude::*;

use super::finish;
use crate::Error;
use crate::desk::Desk;
use crate::id::{BaseId, DocumentId};
use crate::library::{Admitted, Applied, Trouble};
use crate::payload::{About, DatasourceSync};
use crate::summary::Dead;

/// Hears of every dead letter, after the ledger has it; it may hear of one twice.
pub(crate) struct Failures {
    desk: Desk,
    client: Client,
}

impl Failures {
    pub(crate) const fn new(desk: Desk, client: Client) -> Self {
        Self { desk, client }
    }

    async fn note_all(&self, letters: &[DeadLetter]) -> Result<(), BoxError> {
        for letter in letters {
            self.note(letter).await?;
        }
        Ok(())
    }

    async fn note(&self, letter: &DeadLetter) -> Result<(), BoxError> {
        let task_type = letter.task_type.as_str();
        let trouble = Trouble {
            task_type: task_type.to_owned(),
            class: letter.class.as_str().to_owned(),
            reason: letter.error.to_string(),
        };
        let Some(about) = About::of(&letter.payload) else {
            self.desk.mourn(letter.task.clone(), dead(letter, trouble));
            return Ok(());
        };
        let key = about.key();
        let applied = match about.part(task_type) {
            Some(part) => self.desk.library().fail_part(&key, &part, &trouble)?,
            None => self.desk.library().fail(&key, &trouble)?,
        };
        let base = letter.scopes.iter().find(|scope| &*scope.kind == "knowledge_base");
        match base {
            Some(base) if applied != Applied::Stale => {
                finish(&self.desk, &self.client, &BaseId::from(base.id.to_string()), &key.document).await
            }
            _ => Ok(()),
        }
    }
}

impl DeadLetterSink for Failures {
    fn record<'a>(&'a self, letters: &'a [DeadLetter]) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async move {
            let noted = self.note_all(letters).await;
            match &noted {
                Ok(()) => self.desk.letters_taken(),
                // The queues tell of their own troubles.
                Err(error) => {
                    if let Some(error) = of_library(&**error) {
                        self.desk.letters_refused(error);
                    }
                }
            }
            noted
        })
    }
}

/// The library's error, where it is what stands behind this one.
fn of_library<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e Error> {
    std::iter::successors(Some(error), |error| error.source()).find_map(|error| error.downcast_ref())
}

/// A letter that is about a folder or the wiki.
fn dead(letter: &DeadLetter, trouble: Trouble) -> Dead {
    let folder = DatasourceSync::decode(&letter.payload).ok().map(|sync| sync.folder.to_string());
    let Trouble { task_type, class, reason } = trouble;
    Dead { path: folder.unwrap_or_else(|| letter.task.to_string()), task_type, class, reason }
}

/// Letters of documents that begin a new life are carried on by its task: they wait for no replay any more.
pub(super) async fn carry_on(
    desk: &Desk,
    client: &Client,
    base: &BaseId,
    admitted: &[Admitted],
) -> Result<(), BoxError> {
    if admitted.is_empty() {
        return Ok(());
    }
    let lives: HashMap<&DocumentId, &Admitted> =
        admitted.iter().map(|admitted| (&admitted.key.document, admitted)).collect();
    let reach = Some(("knowledge_base".to_owned(), base.to_string()));
    let filter = Filter { reach, unreplayed: true, ..Filter::default() };
    let mut before = None;
    loop {
        let request = ListRequest { filter: filter.clone(), before, limit: 0 };
        let page = desk.ledger().list(request).await?;
        for stored in page.letters {
            let about = About::of(&stored.letter.payload).map(|about| about.key());
            let life = about
                .and_then(|key| lives.get(&key.document).filter(|life| life.key.generation > key.generation));
            let Some(life) = life else { continue };
            let replayed = Replayed { task: key_of(client, base, life)?, at: client.broker().now() };
            desk.ledger().mark_replayed(stored.id, replayed).await?;
        }
        match page.next {
            Some(next) => before = Some(next),
            None => return Ok(()),
        }
    }
}

/// Where the task of a new life is.
fn key_of(client: &Client, base: &BaseId, life: &Admitted) -> Result<TaskKey, BoxError> {
    Ok(super::sync::request(client, base, life).build()?.key)
}
