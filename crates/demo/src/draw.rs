//! Brings the wiki's folder up to what the library holds: the work of `wiki:ingest` and `wiki:finalize`.
//!
//! Invariant: when nothing writes to the library meanwhile, [`finalize`] leaves exactly the pages of what it holds,
//! whatever was interrupted before. What changes during it is marked, and drawn by the next run. One finalize runs at
//! a time: its task has one id, and a request during a run makes it run again.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

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

/// Hears what is drawn so far, after each page, and may stop there. What was drawn stays.
pub type Watch<'a> = &'a mut dyn FnMut(&Drawn) -> ControlFlow<()>;

/// Draws the pages of up to `limit` documents that changed. Tells what it did, and whether more documents wait.
///
/// # Errors
/// [`Error::Library`], [`Error::Write`], [`Error::Stopped`].
pub fn ingest(
    library: &Library,
    shelf: &Shelf,
    limit: u32,
    watch: Watch<'_>,
) -> Result<(Drawn, bool), Error> {
    let dirty = library.dirty(limit)?;
    if dirty.is_empty() {
        return Ok((Drawn::default(), false));
    }
    // Read after the marks: what changes from here on sets a new mark, which stays.
    let atlas = Atlas::new(library.entries()?);
    let changed: BTreeSet<_> = dirty.iter().map(|Dirty { document, .. }| document).collect();
    let entries: Vec<&Entry> = atlas.entries().iter().filter(|entry| changed.contains(&entry.id)).collect();
    library.record_pages(&entries.iter().flat_map(|entry| names_of(entry)).collect::<Vec<_>>())?;
    let mut pen = Pen { library, shelf, watch, drawn: Drawn::default() };
    pen.put_documents(&atlas, entries)?;
    library.clear_dirty(&dirty)?;
    Ok((pen.drawn, !library.dirty(1)?.is_empty()))
}

/// Draws every page anew where it differs, and takes away those that nothing stands behind any more.
///
/// # Errors
/// [`Error::Library`], [`Error::Write`], [`Error::Stopped`].
pub fn finalize(library: &Library, shelf: &Shelf, watch: Watch<'_>) -> Result<Drawn, Error> {
    // Before everything else is read, as above.
    let dirty = library.dirty(u32::MAX)?;
    let atlas = Atlas::new(library.entries()?);
    let index = index_page(&atlas, &library.failures()?, &library.left_out()?);
    let mut wanted: BTreeSet<PageName> = atlas.entries().iter().flat_map(names_of).collect();
    wanted.extend(atlas.terms().map(PageName::term));
    wanted.insert(index.name.clone());
    // Before any is put: a page that lies in the folder is always known, so it can be taken away again.
    library.record_pages(&wanted)?;
    let mut pen = Pen { library, shelf, watch, drawn: Drawn::default() };
    pen.put_documents(&atlas, atlas.entries())?;
    for page in atlas.terms().filter_map(|term| term_page(&atlas, term)) {
        pen.put(&page)?;
    }
    pen.put(&index)?;
    for name in library.stale_pages(&wanted)? {
        shelf.remove(&name)?;
        library.forget_page(&name)?;
        pen.drawn.removed += 1;
    }
    shelf.sweep()?;
    library.clear_dirty(&dirty)?;
    Ok(pen.drawn)
}

/// The files of the wiki that a document may have.
fn names_of(entry: &Entry) -> Vec<PageName> {
    let page = PageName::document(&entry.id, &entry.path);
    let thumbnail = entry.kind.is_picture().then(|| PageName::thumbnail(&entry.id, &entry.path));
    std::iter::once(page).chain(thumbnail).collect()
}

/// Puts pages, counts them, and asks whether to go on.
struct Pen<'a> {
    library: &'a Library,
    shelf: &'a Shelf,
    watch: Watch<'a>,
    drawn: Drawn,
}

impl Pen<'_> {
    fn put_documents<'e>(
        &mut self,
        atlas: &Atlas,
        entries: impl IntoIterator<Item = &'e Entry>,
    ) -> Result<(), Error> {
        for entry in entries {
            let details = self.library.details(&entry.id)?;
            if let Some(page) = document_page(atlas, &entry.id, &details) {
                self.put(&page)?;
            }
            if entry.kind.is_picture()
                && let Some(png) = self.library.thumbnail(&entry.id)?
            {
                self.put(&thumbnail(entry, png))?;
            }
        }
        Ok(())
    }

    fn put(&mut self, page: &Page) -> Result<(), Error> {
        match self.shelf.put(page)? {
            Put::Written => self.drawn.written += 1,
            Put::Same => self.drawn.same += 1,
        }
        if (self.watch)(&self.drawn).is_break() { Err(Error::Stopped) } else { Ok(()) }
    }
}
