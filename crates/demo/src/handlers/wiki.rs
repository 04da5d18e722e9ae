//! `wiki:ingest` and `wiki:finalize`: pages while the work goes on, and the wiki as it should be in the end.

use poolwright::prelude::*;

use super::{ask_for_pages, ask_for_wiki, go_on, judged, stopped_or};
use crate::desk::Desk;
use crate::draw;
use crate::payload::{WikiFinalize, WikiIngest};

/// Documents whose pages are drawn in one run of `wiki:ingest`.
const DOCUMENTS_MAX: u32 = 500;

pub(super) async fn ingest(
    task: WikiIngest,
    cx: Context,
    State(desk): State<Desk>,
    State(inspector): State<TaskInspector>,
    client: Client,
) -> Result<(), BoxError> {
    let drawing =
        desk.draw(|library, shelf| draw::ingest(library, shelf, DOCUMENTS_MAX, &mut |_| go_on(&cx)));
    let (drawn, more) = drawing.map_err(|error| stopped_or(&cx, error))?;
    if more {
        ask_for_pages(&client, &task.knowledge_base_id).await?;
    }
    // Another process may have drawn the whole wiki meanwhile, and these pages are of an earlier look.
    let others = drawn.written > 0 && inspector.servers().await?.len() > 1;
    if others && desk.library().is_all_settled().map_err(judged)? {
        ask_for_wiki(&client, &task.knowledge_base_id).await?;
    }
    Ok(())
}

pub(super) async fn finalize(
    task: WikiFinalize,
    cx: Context,
    State(desk): State<Desk>,
    State(inspector): State<TaskInspector>,
    client: Client,
) -> Result<(), BoxError> {
    desk.note("drawing the wiki");
    let library = desk.library();
    let before = library.last_mark().map_err(judged)?;
    desk.draw(|library, shelf| draw::finalize(library, shelf, &mut |_| go_on(&cx)))
        .map_err(|error| stopped_or(&cx, error))?;
    // A request for pages that waits for others has nothing left to wait for.
    let ingest = WikiIngest::of(task.knowledge_base_id.clone());
    let queue = cx.queue().as_str();
    match inspector.run_now((queue, ingest.id().as_str())).await {
        // There is none, or it runs already.
        Err(error) if error.is_retryable() => return Err(error.into()),
        _ => {}
    }
    // Work of another knowledge base that ended while this one drew. One that goes on will ask by itself.
    let changed = library.last_mark().map_err(judged)? != before;
    if changed && library.is_all_settled().map_err(judged)? {
        ask_for_wiki(&client, &task.knowledge_base_id).await?;
    }
    Ok(())
}
