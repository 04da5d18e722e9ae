//! Brings the wiki's folder up to what the library holds: the work of `wiki:ingest` and `wiki:finalize`.
//!
//! Invariant: when nothing writes to the library meanwhile, [`finalize`] leaves exactly the pages of what it holds,
//! whatever was interrupted before. What changes during it is marked, and drawn by the next run. One finalize runs at
//! a time: its task has one id, and a request during a run makes it run again.

use std::collections::BTreeSet;

use crate::Error;
use crate::library::{Dirty, Library};
use crate::stage::wiki::{
    Atlas, Entry, Page, PageName, Put, Shelf, document_page, index_page, term_page, thumbnail,
};

/// What drawing did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drawn {
    /// Pages and thumbnails that are new or changed.
    pub written: usize,
    /// Those that were as they should be.
    pub same: usize,
    /// Those that were taken away.
    pub removed: usize,
}

/// Draws the pages of up to `limit` documents that changed. Tells what it did, and whether more documents wait.
///
/// # Errors
/// [`Error::Library`], [`Error::Write`].
pub fn ingest(library: &Library, shelf: &Shelf, limit: u32) -> Result<(Drawn, bool), Error> {
    let dirty = library.dirty(limit)?;
    let mut drawn = Drawn::default();
    if dirty.is_empty() {
        return Ok((drawn, false));
    }
    // Read after the marks: what changes from here on sets a new mark, which stays.
    let atlas = Atlas::new(library.entries()?);
    let wanted: BTreeSet<_> = dirty.iter().map(|Dirty { document, .. }| document).collect();
    for entry in atlas.entries().iter().filter(|entry| wanted.contains(&entry.id)) {
        for page in pages_of(library, &atlas, entry)? {
            put(library, shelf, &page, &mut drawn)?;
        }
    }
    library.clear_dirty(&dirty)?;
    Ok((drawn, !library.dirty(1)?.is_empty()))
}

/// Draws every page anew where it differs, and takes away those that nothing stands behind any more.
///
/// # Errors
/// [`Error::Library`], [`Error::Write`].
pub fn finalize(library: &Library, shelf: &Shelf) -> Result<Drawn, Error> {
    let mut drawn = Drawn::default();
    let mut wanted = BTreeSet::new();
    let atlas = Atlas::new(library.entries()?);
    let mut keep = |page: &Page, drawn: &mut Drawn| {
        wanted.insert(page.name.clone());
        put(library, shelf, page, drawn)
    };
    for entry in atlas.entries() {
        for page in pages_of(library, &atlas, entry)? {
            keep(&page, &mut drawn)?;
        }
    }
    for page in atlas.terms().filter_map(|term| term_page(&atlas, term)) {
        keep(&page, &mut drawn)?;
    }
    keep(&index_page(&atlas, &library.failures()?), &mut drawn)?;
    take_away(library, shelf, &wanted, &mut drawn)?;
    shelf.sweep()?;
    Ok(drawn)
}

fn pages_of(library: &Library, atlas: &Atlas, entry: &Entry) -> Result<Vec<Page>, Error> {
    let details = library.details(&entry.id)?;
    let mut pages: Vec<Page> = document_page(atlas, &entry.id, &details).into_iter().collect();
    if entry.kind.is_picture() {
        pages.extend(library.thumbnail(&entry.id)?.map(|png| thumbnail(entry, png)));
    }
    Ok(pages)
}

/// Writes the name down first: a page that lies in the folder is always known, so it can be taken away again.
fn put(library: &Library, shelf: &Shelf, page: &Page, drawn: &mut Drawn) -> Result<(), Error> {
    library.record_page(&page.name)?;
    match shelf.put(page)? {
        Put::Written => drawn.written += 1,
        Put::Same => drawn.same += 1,
    }
    Ok(())
}

fn take_away(
    library: &Library,
    shelf: &Shelf,
    wanted: &BTreeSet<PageName>,
    drawn: &mut Drawn,
) -> Result<(), Error> {
    for name in library.stale_pages(wanted)? {
        shelf.remove(&name)?;
        library.forget_page(&name)?;
        drawn.removed += 1;
    }
    Ok(())
}
