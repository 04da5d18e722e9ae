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
    /// How often in a row the library did not take dead letters, and what it said last.
    refusals: u32,
    refusal: String,
}

/// So often dead letters are offered to a library that refuses them. The worker pauses longer from offer to offer, so
/// that is a quarter of a minute; a lock of another process is waited for at each of them besides.
const REFUSALS_MAX: u32 = 10;

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

    /// The library took all dead letters that it was offered.
    pub(crate) fn letters_taken(&self) {
        self.notes().refusals = 0;
    }

    /// It did not, and they are offered again.
    pub(crate) fn letters_refused(&self, why: &Error) {
        let mut notes = self.notes();
        notes.refusals = notes.refusals.saturating_add(1);
        notes.refusal = match why {
            Error::Library(answer) => answer.to_string(),
            other => other.to_string(),
        };
    }

    /// Why the library cannot be used, now or ever: then a run would wait for its dead letters without end.
    pub(crate) fn trouble(&self) -> Option<Error> {
        let library = self.library();
        library.fault().or_else(|| {
            let notes = self.notes();
            let (path, detail) = (library.path().display().to_string(), notes.refusal.clone());
            (notes.refusals >= REFUSALS_MAX).then_some(Error::FailingLibrary { path, detail })
        })
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The library's file below `home`.
pub(crate) fn library_at(home: &Path) -> PathBuf {
    home.join("library.db")
}

#[cfg(test)]
mod tests {
    use poolwright::Stores;
    use poolwright::core::Chance;
    use poolwright::core::clock::SystemClock;

    use super::*;

    #[test]
    fn a_library_that_refuses_letters_again_and_again_ends_the_run_and_a_moment_does_not() {
        let home = tempfile::tempdir().expect("folder");
        let ledger = Stores::memory(Arc::new(SystemClock), Chance::seeded(1)).ledger;
        let desk = Desk::open(home.path(), ledger).expect("opens");
        let full = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL);
        let full = Error::from(rusqlite::Error::SqliteFailure(full, None));
        for _ in 1..REFUSALS_MAX {
            desk.letters_refused(&full);
        }
        assert!(desk.trouble().is_none());
        desk.letters_taken();
        desk.letters_refused(&full);
        assert!(desk.trouble().is_none(), "it was a moment");
        for _ in 1..REFUSALS_MAX {
            desk.letters_refused(&full);
        }
        let trouble = desk.trouble().expect("it lasts").to_string();
        let at = library_at(home.path());
        let expected = format!("the library {} fails again and again: ", at.display());
        assert!(trouble.starts_with(&expected) && trouble.ends_with("the same command goes on"), "{trouble}");
    }
}
