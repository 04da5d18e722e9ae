//! The handlers of the preset: each takes one step, writes it down, and asks for the next.
//!
//! ```text
//!  datasource:sync ─┬─► document:process ─► knowledge:post_process ─┬─► summary:generation   ─┐
//!                   │                               │               ├─► question:generation   ├─ the last one of a
//!                   │                               │               └─► chunk:extract        ─┤  knowledge base
//!                   ├─► image:multimodal ───────────┼─────────────────────────────────────────┤
//!                   │                               ▼                                         ▼
//!                   │                          wiki:ingest                              wiki:finalize
//!                   └── nothing to do ────────────────────────────────────────────────────────▲
//! ```
//!
//! Handlers block their thread while they read, decode and write: every pool has a thread for each worker.
//!
//! Invariant: a step is written down in one transaction that the library keys by document and generation, and the next
//! step is asked for under an id that follows from it, after the write and again whenever the task runs again. So a task
//! that runs twice, or a process that dies between the two, changes nothing and loses nothing.

use std::ops::ControlFlow;

use poolwright::client::{Batch, Error as ClientError};
use poolwright::core::OnConflict;
use poolwright::prelude::*;

use crate::Error;
use crate::desk::Desk;
use crate::id::{BaseId, DocumentId, Key};
use crate::library::{Library, Record};
use crate::payload::{
    ChunkExtract, DatasourceSync, DocumentProcess, ImageMultimodal, PostProcess, QuestionGeneration,
    SummaryGeneration, WikiFinalize, WikiIngest,
};
use crate::preset::{FINALIZE_DELAY, INGEST_DELAY};

mod document;
mod enrich;
mod letters;
mod open;
mod picture;
mod post_process;
mod sync;
mod wiki;

pub(crate) use letters::Failures;

/// Tasks that go to the store in one round trip.
const BATCH: usize = 200;

/// The task types that the demo runs, as the file of queues names them.
#[must_use]
pub fn handled_types() -> Vec<&'static str> {
    vec![
        DatasourceSync::NAME,
        DocumentProcess::NAME,
        ImageMultimodal::NAME,
        PostProcess::NAME,
        SummaryGeneration::NAME,
        QuestionGeneration::NAME,
        ChunkExtract::NAME,
        WikiIngest::NAME,
        WikiFinalize::NAME,
    ]
}

/// Adds the handlers.
pub(crate) fn register(orchestrator: Orchestrator) -> Orchestrator {
    orchestrator
        .handle(sync::sync)
        .handle(document::process)
        .handle(picture::look)
        .handle(post_process::fan_out)
        .handle(enrich::summarise)
        .handle(enrich::ask)
        .handle(enrich::extract)
        .handle(wiki::ingest)
        .handle(wiki::finalize)
}

/// The document of a task; nothing when it is gone or has a newer life, so that there is nothing to do.
fn current(library: &Library, key: &Key) -> Result<Option<Record>, BoxError> {
    let record = library.record(&key.document).map_err(judged)?;
    Ok(record.filter(|record| record.key == *key))
}

/// What an error of a stage means for its task: content never gets better, a moment may.
fn judged(error: Error) -> BoxError {
    if error.is_permanent() { TaskError::permanent(error).into() } else { error.into() }
}

/// The same where the stage may have been stopped: then it says why.
fn stopped_or(cx: &Context, error: Error) -> BoxError {
    match (error, cx.checkpoint()) {
        (Error::Stopped, Err(why)) => why.into(),
        (error, _) => judged(error),
    }
}

/// What a stage that asks whether to go on is told.
fn go_on(cx: &Context) -> ControlFlow<()> {
    if cx.checkpoint().is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Sends tasks of which some may be there already.
async fn send(batch: Batch<'_>) -> Result<(), ClientError> {
    for outcome in batch.send().await {
        match outcome {
            Err(error) if !error.is_duplicate() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Has the pages drawn of what changed by now.
async fn ask_for_pages(client: &Client, base: &BaseId) -> Result<(), ClientError> {
    let ingest = WikiIngest::of(base.clone());
    let request = client.task(&ingest).id(ingest.id()).on_conflict(OnConflict::RunAgain);
    request.delay(INGEST_DELAY).send().await.map(drop)
}

/// Has the wiki drawn as it should be in the end. Id and `run_again` are rules of the type.
async fn ask_for_wiki(client: &Client, base: &BaseId) -> Result<(), ClientError> {
    client.task(&WikiFinalize::of(base.clone())).delay(FINALIZE_DELAY).send().await.map(drop)
}

/// Ends a step that may have been the last one of its knowledge base: then the wiki is drawn.
async fn finish(desk: &Desk, client: &Client, base: &BaseId, document: &DocumentId) -> Result<(), BoxError> {
    if desk.library().is_settled_around(document).map_err(judged)? {
        ask_for_wiki(client, base).await?;
    }
    Ok(())
}
