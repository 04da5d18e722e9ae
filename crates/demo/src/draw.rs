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
    let mut pen = Pen::new(library, shelf, watch);
    if dirty.is_empty() {
        return Ok((pen.drawn, false));
    }
    // Read after the marks: what changes from here on sets a new mark, which stays.
    let atlas = Atlas::new(library.entries()?);
    let wanted: BTreeSet<_> = dirty.iter().map(|Dirty { document, .. }| document).collect();
    for entry in atlas.entries().iter().filter(|entry| wanted.contains(&entry.id)) {
        for page in pages_of(library, &atlas, entry)? {
            pen.put(&page)?;
        }
    }
    let drawn = pen.drawn;
    library.clear_dirty(&dirty)?;
    Ok((drawn, !library.dirty(1)?.is_empty()))
}

/// Draws every page anew where it differs, and takes away those that nothing stands behind any more.
///
/// # Errors
/// [`Error::Library`], [`Error::Write`], [`Error::Stopped`].
pub fn finalize(library: &Library, shelf: &Shelf, watch: Watch<'_>) -> Result<Drawn, Error> {
    // Before everything else is read, as above.
    let dirty = library.dirty(u32::MAX)?;
    let atlas = Atlas::new(library.entries()?);
    let failures = library.failures()?;
    let mut pen = Pen::new(library, shelf, watch);
    for entry in atlas.entries() {
        for page in pages_of(library, &atlas, entry)? {
            pen.put(&page)?;
        }
    }
    for page in atlas.terms().filter_map(|term| term_page(&atlas, term)) {
        pen.put(&page)?;
    }
    pen.put(&index_page(&atlas, &failures))?;
    let drawn = pen.take_away_others()?;
    shelf.sweep()?;
    library.clear_dirty(&dirty)?;
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

/// Puts pages and remembers which.
struct Pen<'a> {
    library: &'a Library,
    shelf: &'a Shelf,
    watch: Watch<'a>,
    put: BTreeSet<PageName>,
    drawn: Drawn,
}

impl<'a> Pen<'a> {
    fn new(library: &'a Library, shelf: &'a Shelf, watch: Watch<'a>) -> Self {
        Self { library, shelf, watch, put: BTreeSet::new(), drawn: Drawn::default() }
    }

    /// Writes the name down first: a page that lies in the folder is always known, so it can be taken away again.
    fn put(&mut self, page: &Page) -> Result<(), Error> {
        self.library.record_page(&page.name)?;
        match self.shelf.put(page)? {
            Put::Written => self.drawn.written += 1,
            Put::Same => self.drawn.same += 1,
        }
        self.put.insert(page.name.clone());
        if (self.watch)(&self.drawn).is_break() { Err(Error::Stopped) } else { Ok(()) }
    }

    fn take_away_others(mut self) -> Result<Drawn, Error> {
        for name in self.library.stale_pages(&self.put)? {
            self.shelf.remove(&name)?;
            self.library.forget_page(&name)?;
            self.drawn.removed += 1;
        }
        Ok(self.drawn)
    }
}
