//! `document:process`: reads a file, cuts it into chunks and indexes them.

use poolwright::prelude::*;

use super::open::open;
use super::{current, judged};
use crate::desk::Desk;
use crate::library::{Applied, Record, Status};
use crate::payload::{DocumentProcess, OfDocument, PostProcess};
use crate::stage::{chunk, read};

pub(super) async fn process(
    task: DocumentProcess,
    cx: Context,
    State(desk): State<Desk>,
    client: Client,
) -> Result<(), BoxError> {
    let Some(record) = current(desk.library(), &task.key())? else { return Ok(()) };
    // An earlier run of this task may have read it and died before it asked for the next step.
    let was_read = matches!(record.status, Status::Finalizing | Status::Completed);
    if !was_read && !index(&task, &record, &cx, &desk, &client).await? {
        return Ok(());
    }
    let next = PostProcess {
        tenant_id: task.tenant_id,
        knowledge_id: task.knowledge_id.clone(),
        knowledge_base_id: task.knowledge_base_id.clone(),
        attempt: task.attempt,
    };
    match client.task(&next).id(next.id()).send().await {
        Err(error) if !error.is_duplicate() => Err(error.into()),
        _ => Ok(()),
    }
}

/// Reads and stores; false when this life of the document is over.
async fn index(
    task: &DocumentProcess,
    record: &Record,
    cx: &Context,
    desk: &Desk,
    client: &Client,
) -> Result<bool, BoxError> {
    let library = desk.library();
    if library.begin(&record.key).map_err(judged)? == Applied::Stale {
        return Ok(false);
    }
    let Some(bytes) = open(desk, client, task.base(), record).await? else { return Ok(false) };
    cx.checkpoint()?;
    let document = read::read(record.kind, &record.path, &bytes, &read::Limits::default()).map_err(judged)?;
    drop(bytes);
    cx.checkpoint()?;
    let chunks = chunk::cut(&record.key.document, &document, &chunk::Size::default());
    cx.checkpoint()?;
    let applied = library.store_content(&record.key, &document, &chunks).map_err(judged)?;
    Ok(applied != Applied::Stale)
}
