//! `datasource:sync`: finds what is new, changed or gone in a folder, and asks for the work on it.

use std::path::Path;

use poolwright::client::Request;
use poolwright::prelude::*;

use super::{BATCH, ask_for_wiki, go_on, judged, letters, send, stopped_or};
use crate::Error;
use crate::desk::Desk;
use crate::id::BaseId;
use crate::library::Admitted;
use crate::payload::{DatasourceSync, DocumentProcess, ImageMultimodal, OfDocument, TENANT};
use crate::stage::scan::{self, Scan, diff};
use crate::summary::Tally;

pub(super) async fn sync(
    task: DatasourceSync,
    cx: Context,
    State(desk): State<Desk>,
    client: Client,
) -> Result<(), BoxError> {
    desk.note(task.folder.as_str());
    let scan = walk(&task, &cx, &desk).map_err(|error| stopped_or(&cx, error))?;
    cx.progress(0.2, format!("{} files", scan.files.len())).await;
    let admitted = take_in(&task, &cx, &desk, &scan).map_err(|error| stopped_or(&cx, error))?;
    for (at, some) in admitted.chunks(BATCH).enumerate() {
        cx.checkpoint()?;
        let done = (at * BATCH) as f64 / admitted.len() as f64;
        cx.progress(0.4 + 0.5 * done, format!("{} tasks asked for", at * BATCH)).await;
        let mut batch = client.batch();
        batch.extend(some.iter().map(|admitted| request(&client, &task.knowledge_base_id, admitted)));
        send(batch).await?;
    }
    letters::carry_on(&desk, &client, &task.knowledge_base_id, &admitted).await?;
    // Also when there was nothing to do: a page that somebody deleted comes back.
    if desk.library().is_settled(&task.folder).map_err(judged)? {
        ask_for_wiki(&client, &task.knowledge_base_id).await?;
    }
    Ok(())
}

fn walk(task: &DatasourceSync, cx: &Context, desk: &Desk) -> Result<Scan, Error> {
    let root = Path::new(task.folder.as_str());
    let mut scan = scan::scan(root, &scan::Options::default(), &mut |_| go_on(cx))?;
    // The wiki may lie in the folder; reading it would make it grow with every run.
    scan.files.retain(|found| !root.join(&found.path).starts_with(desk.wiki()));
    Ok(scan)
}

/// Brings the library's list of files up to what was seen. Gives the files that need a task, those among them that an
/// interrupted run left behind.
fn take_in(task: &DatasourceSync, cx: &Context, desk: &Desk, scan: &Scan) -> Result<Vec<Admitted>, Error> {
    let (library, source) = (desk.library(), &task.folder);
    let known = library.known(source)?;
    let seen = diff(&known, scan);
    for gone in &seen.removed {
        library.remove(source, &gone.path)?;
    }
    library.record_skips(source, &scan.skipped)?;
    let mut admitted = Vec::new();
    for found in seen.new.iter().chain(&seen.changed).chain(&seen.unfinished) {
        if go_on(cx).is_break() {
            return Err(Error::Stopped);
        }
        admitted.push(library.admit(source, found)?);
    }
    desk.count(Tally {
        new: seen.new.len() as u64,
        changed: seen.changed.len() as u64,
        unfinished: seen.unfinished.len() as u64,
        removed: seen.removed.len() as u64,
        unchanged: (seen.unchanged.len() + seen.unknown.len()) as u64,
    });
    Ok(admitted)
}

/// The task that works on a file.
pub(super) fn request<'c>(client: &'c Client, base: &BaseId, admitted: &Admitted) -> Request<'c> {
    let (knowledge_id, attempt) = (admitted.key.document.clone(), admitted.key.generation);
    let (knowledge_base_id, path) = (base.clone(), admitted.path.clone());
    if admitted.kind.is_picture() {
        let task = ImageMultimodal {
            tenant_id: TENANT,
            knowledge_id,
            knowledge_base_id,
            image_local_path: path,
            attempt,
        };
        client.task(&task).id(task.id())
    } else {
        let task = DocumentProcess {
            tenant_id: TENANT,
            knowledge_id,
            knowledge_base_id,
            file_path: path,
            file_type: admitted.kind.as_str().to_owned(),
            attempt,
        };
        client.task(&task).id(task.id())
    }
}
