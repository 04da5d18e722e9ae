//! Opens the file of a task, which may have changed or gone since the task was asked for.

use std::io;
use std::path::Path;

use poolwright::prelude::*;

use super::sync::request;
use super::{finish, judged};
use crate::desk::Desk;
use crate::id::BaseId;
use crate::kind::HEAD_BYTES;
use crate::library::Record;
use crate::stage::scan::{Found, Options, load};
use crate::{Error, Kind};

/// The content of the document's file if it is the one that was admitted and holds what its name promises.
///
/// A file that changed meanwhile begins a new life with a task of its own, and one that is gone is removed; then there
/// is nothing to do here.
pub(super) async fn open(
    desk: &Desk,
    client: &Client,
    base: &BaseId,
    record: &Record,
) -> Result<Option<Vec<u8>>, BoxError> {
    desk.note(&record.path);
    match look(record).map_err(judged)? {
        File::Same(bytes) => {
            Kind::check(extension(&record.path), head(&bytes)).map_err(judged)?;
            Ok(Some(bytes))
        }
        File::Changed(found) => {
            let admitted = desk.library().admit(&record.source, &found).map_err(judged)?;
            match request(client, base, &admitted).send().await {
                Err(error) if !error.is_duplicate() => Err(error.into()),
                _ => Ok(None),
            }
        }
        File::Gone => {
            desk.library().remove(&record.source, &record.path).map_err(judged)?;
            finish(desk, client, base, &record.key.document).await?;
            Ok(None)
        }
    }
}

enum File {
    Same(Vec<u8>),
    Changed(Found),
    Gone,
}

fn look(record: &Record) -> Result<File, Error> {
    let root = Path::new(record.source.as_str());
    let (bytes, hash) = match load(root, &record.path, Options::default().bytes_max) {
        // Without its folder nothing is known about it: then the error stays.
        Err(Error::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound && root.is_dir() => {
            return Ok(File::Gone);
        }
        loaded => loaded?,
    };
    if hash == record.hash {
        return Ok(File::Same(bytes));
    }
    let named = extension(&record.path).and_then(Kind::of_extension);
    let kind = named.map_or_else(|| Kind::check(None, head(&bytes)), Ok)?;
    Ok(File::Changed(Found { path: record.path.clone(), kind, size: bytes.len() as u64, hash }))
}

fn extension(path: &str) -> Option<&str> {
    Path::new(path).extension().and_then(|extension| extension.to_str())
}

fn head(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(HEAD_BYTES)]
}
