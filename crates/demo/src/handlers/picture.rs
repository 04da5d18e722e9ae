//! `image:multimodal`: decodes a picture: its size, its colours, a thumbnail.

use poolwright::prelude::*;

use super::open::open;
use super::{current, finish, judged};
use crate::desk::Desk;
use crate::library::{Applied, Status};
use crate::payload::{ImageMultimodal, OfDocument};
use crate::stage::image;

pub(super) async fn look(
    task: ImageMultimodal,
    cx: Context,
    State(desk): State<Desk>,
    client: Client,
) -> Result<(), BoxError> {
    let library = desk.library();
    let Some(record) = current(library, &task.key())? else { return Ok(()) };
    if record.status != Status::Completed {
        if library.begin(&record.key).map_err(judged)? == Applied::Stale {
            return Ok(());
        }
        let Some(bytes) = open(&desk, &client, task.base(), &record).await? else { return Ok(()) };
        cx.checkpoint()?;
        let picture = image::inspect(record.kind, &bytes, &image::Limits::default()).map_err(judged)?;
        if library.store_picture(&record.key, &picture).map_err(judged)? == Applied::Stale {
            return Ok(());
        }
    }
    finish(&desk, &client, task.base(), &record.key.document).await
}
