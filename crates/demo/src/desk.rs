//! What every handler has at hand: the library, the wiki's shelf, and notes for whoever watches the run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use poolwright::core::TaskKey;
use poolwright::ledger::Ledger;

use crate::Error;
use crate::id::DocumentId;
use crate::library::Library;
use crate::stage::wiki::Shelf;
use crate::summary::{Dead, Tally};

/// The place where handlers work. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Desk(Arc<Inner>);

struct Inner {
    library: Library,
    shelf: Shelf,
    wiki: PathBuf,
    ledger: Arc<dyn Ledger>,
    /// Held by whoever draws, so that no page is drawn over by one who looked at the library earlier.
    drawing: Mutex<()>,
    notes: Mutex<Notes>,
}

/// What happened in this process.
#[derive(Default)]
struct Notes {
    tally: Tally,
    at: String,
    /// Dead letters that are about no document, by task: the same one may be told twice.
    letters: BTreeMap<TaskKey, Dead>,
}

impl Desk {
    /// Opens library and wiki below `home`.
    ///
    /// # Errors
    /// What opening them brings.
    pub(crate) fn open(home: &Path, ledger: Arc<dyn Ledger>) -> Result<Self, Error> {
        let library = Library::open(&library_at(home))?;
        let wiki = home.join("wiki");
        let shelf = Shelf::open(&wiki)?;
        // Paths of files are compared with it.
        let wiki = wiki.canonicalize().map_err(|e| Error::read(&wiki, e))?;
        Ok(Self(Arc::new(Inner {
            library,
            shelf,
            wiki,
            ledger,
            drawing: Mutex::new(()),
            notes: Mutex::default(),
        })))
    }

    pub(crate) fn library(&self) -> &Library {
        &self.0.library
    }

    pub(crate) fn ledger(&self) -> &Arc<dyn Ledger> {
        &self.0.ledger
    }

    /// Where the wiki is, which is no source of documents.
    pub(crate) fn wiki(&self) -> &Path {
        &self.0.wiki
    }

    /// Draws while nobody else of this process does.
    pub(crate) fn draw<T>(&self, draw: impl FnOnce(&Library, &Shelf) -> T) -> T {
        let _pen = self.0.drawing.lock().unwrap_or_else(PoisonError::into_inner);
        draw(&self.0.library, &self.0.shelf)
    }

    /// Says what is being worked on, for the one who watches.
    pub(crate) fn note(&self, at: &str) {
        let mut notes = self.notes();
        notes.at.clear();
        notes.at.push_str(at);
    }

    /// The same of a document that is known by its id.
    pub(crate) fn note_document(&self, document: &DocumentId) {
        // Nobody misses the name of one that cannot be looked up just now.
        if let Ok(Some(path)) = self.library().path_of(document) {
            self.note(&path);
        }
    }

    pub(crate) fn at(&self) -> String {
        self.notes().at.clone()
    }

    pub(crate) fn count(&self, more: Tally) {
        self.notes().tally += more;
    }

    pub(crate) fn tally(&self) -> Tally {
        self.notes().tally
    }

    pub(crate) fn mourn(&self, task: TaskKey, dead: Dead) {
        self.notes().letters.insert(task, dead);
    }

    pub(crate) fn mourned(&self) -> Vec<Dead> {
        self.notes().letters.values().cloned().collect()
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The library's file below `home`.
pub(crate) fn library_at(home: &Path) -> PathBuf {
    home.join("library.db")
}
