//! `summary:generation`, `question:generation` and `chunk:extract`: each makes one part that its document waits for.

use poolwright::prelude::*;

use super::{finish, judged};
use crate::desk::Desk;
use crate::payload::{ChunkExtract, OfDocument, QuestionGeneration, SummaryGeneration};
use crate::stage::question::{Options, Passage};
use crate::stage::{graph, question, summary};

pub(super) async fn summarise(
    task: SummaryGeneration,
    cx: Context,
    State(desk): State<Desk>,
    client: Client,
) -> Result<(), BoxError> {
    let (library, key) = (desk.library(), task.key());
    desk.note_document(&key.document);
    let Some(chunks) = library.chunks(&key).map_err(judged)? else { return Ok(()) };
    cx.checkpoint()?;
    let texts: Vec<&str> = chunks.iter().map(|chunk| chunk.text.as_str()).collect();
    let summary = summary::summarise(&texts, &summary::Options::default());
    // Whether it was stored now, before, or nobody waits for it any more: there is nothing left to do.
    let _ = library.store_summary(&key, &summary).map_err(judged)?;
    finish(&desk, &client, task.base(), &key.document).await
}

pub(super) async fn ask(
    task: QuestionGeneration,
    cx: Context,
    State(desk): State<Desk>,
    client: Client,
) -> Result<(), BoxError> {
    let (library, key) = (desk.library(), task.key());
    desk.note_document(&key.document);
    let Some(chunks) = library.batch(&key, task.batch_index).map_err(judged)? else { return Ok(()) };
    let defaults = Options::default();
    let options = Options { per_chunk: task.question_count.unwrap_or(defaults.per_chunk) };
    let mut passages = Vec::with_capacity(chunks.len());
    for chunk in &chunks {
        cx.checkpoint()?;
        passages.push(Passage { chunk: &chunk.id, heading: &chunk.heading, text: &chunk.text });
    }
    let questions = question::ask(&passages, &options);
    let _ = library.store_questions(&key, task.batch_index, &questions).map_err(judged)?;
    finish(&desk, &client, task.base(), &key.document).await
}

pub(super) async fn extract(
    task: ChunkExtract,
    State(desk): State<Desk>,
    client: Client,
) -> Result<(), BoxError> {
    let (library, key) = (desk.library(), task.key());
    desk.note_document(&key.document);
    let Some(chunk) = library.chunk(&key, &task.chunk_id).map_err(judged)? else { return Ok(()) };
    let _ = library.store_graph(&key, &chunk.id, &graph::extract(&chunk.text)).map_err(judged)?;
    finish(&desk, &client, task.base(), &key.document).await
}
