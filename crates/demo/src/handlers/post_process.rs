//! `knowledge:post_process`: ends the reading of a document and fans out what enriches it.

use poolwright::client::Request;
use poolwright::prelude::*;

use super::{BATCH, ask_for_pages, finish, judged, send};
use crate::desk::Desk;
use crate::library::Part;
use crate::payload::{ChunkExtract, OfDocument, PostProcess, QuestionGeneration, SummaryGeneration};
use crate::stage::question::BATCH_CHUNKS;

pub(super) async fn fan_out(
    task: PostProcess,
    cx: Context,
    State(desk): State<Desk>,
    client: Client,
) -> Result<(), BoxError> {
    let (library, key) = (desk.library(), task.key());
    let Some(chunks) = library.chunk_ids(&key).map_err(judged)? else { return Ok(()) };
    let batches = u32::try_from(chunks.len().div_ceil(BATCH_CHUNKS)).unwrap_or(u32::MAX);
    let mut parts = vec![Part::Summary];
    parts.extend((0..batches).map(Part::Questions));
    parts.extend(chunks.into_iter().map(Part::Graph));
    // Once only; what an earlier run asked for and what has ended since is not asked for again.
    let _ = library.expect_parts(&key, &parts).map_err(judged)?;
    let open = library.open_parts(&key).map_err(judged)?;
    for (at, some) in open.chunks(BATCH).enumerate() {
        cx.checkpoint()?;
        if at > 0 {
            cx.progress((at * BATCH) as f64 / open.len() as f64, "fanning out").await;
        }
        let mut batch = client.batch();
        batch.extend(some.iter().map(|part| request(&client, &task, part)));
        send(batch).await?;
    }
    ask_for_pages(&client, task.base()).await?;
    finish(&desk, &client, task.base(), &key.document).await
}

/// The task that makes a part.
fn request<'c>(client: &'c Client, task: &PostProcess, part: &Part) -> Request<'c> {
    let PostProcess { tenant_id, attempt, .. } = *task;
    let (knowledge_id, knowledge_base_id) = (task.knowledge_id.clone(), task.knowledge_base_id.clone());
    match part {
        Part::Summary => {
            named(client, &SummaryGeneration { tenant_id, knowledge_id, knowledge_base_id, attempt })
        }
        Part::Questions(batch) => named(
            client,
            &QuestionGeneration {
                tenant_id,
                knowledge_id,
                knowledge_base_id,
                batch_index: *batch,
                question_count: None,
                attempt,
            },
        ),
        Part::Graph(chunk) => {
            let chunk_id = chunk.clone();
            named(client, &ChunkExtract { tenant_id, chunk_id, knowledge_id, knowledge_base_id, attempt })
        }
    }
}

fn named<'c>(client: &'c Client, task: &impl OfDocument) -> Request<'c> {
    client.task(task).id(task.id())
}
