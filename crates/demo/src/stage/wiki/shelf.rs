//! The wiki's folder: pages are put there whole or not at all, and only when they changed.
//!
//! Invariant: under a page's name lies nothing, the old page or the new one, never a part of either, whoever else
//! writes at the same time and whenever the process is killed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::name::PageName;
use super::page::Page;
use crate::Error;

const FOLDERS: [&str; 4] = ["", "documents", "terms", "pictures"];
/// What an unfinished file's name ends with.
const PART: &str = ".part";
/// Times a put begins again when another process swept its unfinished file away.
const TRIES_MAX: usize = 5;

/// What a put did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// The page is new or changed.
    Written,
    /// The same page lay there.
    Same,
}

/// A folder of pages.
#[derive(Debug, Clone)]
pub struct Shelf {
    root: PathBuf,
}

impl Shelf {
    /// Opens the folder, making it if need be.
    ///
    /// # Errors
    /// When a folder cannot be made.
    pub fn open(root: &Path) -> Result<Self, Error> {
        for folder in FOLDERS {
            let path = root.join(folder);
            fs::create_dir_all(&path).map_err(|e| Error::write(&path, e))?;
        }
        Ok(Self { root: root.to_path_buf() })
    }

    /// Puts a page: through a file beside it and a rename. Without waiting for the disk, because pages can be drawn
    /// again: the next put compares and writes anew what a power cut spoiled.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn put(&self, page: &Page) -> Result<Put, Error> {
        let path = self.root.join(page.name.as_str());
        if fs::read(&path).is_ok_and(|there| there == page.content) {
            return Ok(Put::Same);
        }
        for _ in 1..TRIES_MAX {
            match write_beside(&path, &page.content) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    // A sweep of another process took the part, or someone removed the folder.
                    Self::open(&self.root)?;
                }
                done => return done.map(|()| Put::Written).map_err(|e| Error::write(&path, e)),
            }
        }
        write_beside(&path, &page.content).map(|()| Put::Written).map_err(|e| Error::write(&path, e))
    }

    /// Removes a page; that it is gone already is fine.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub fn remove(&self, name: &PageName) -> Result<(), Error> {
        let path = self.root.join(name.as_str());
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::write(&path, e)),
            _ => Ok(()),
        }
    }

    /// Removes the unfinished files that a killed process left behind.
    ///
    /// # Errors
    /// When a folder cannot be listed. A file that goes away meanwhile is no error.
    pub fn sweep(&self) -> Result<(), Error> {
        for folder in FOLDERS {
            let folder = self.root.join(folder);
            for entry in fs::read_dir(&folder).map_err(|e| Error::read(&folder, e))?.flatten() {
                let name = entry.file_name();
                let name = name.as_encoded_bytes();
                if name.starts_with(b".") && name.ends_with(PART.as_bytes()) {
                    // Whoever finds it gone is content; whoever still writes it begins again.
                    drop(fs::remove_file(entry.path()));
                }
            }
        }
        Ok(())
    }
}

/// Writes to a hidden name that no other process or thread uses, then renames.
pub(crate) fn write_beside(path: &Path, content: &[u8]) -> io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let part = path.with_file_name(format!(".{name}.{}-{number}{PART}", std::process::id()));
    let written = fs::write(&part, content).and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        drop(fs::remove_file(&part));
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(content: &str) -> Page {
        Page { name: PageName::term("tide"), content: content.as_bytes().to_vec() }
    }

    fn files(root: &Path) -> Vec<String> {
        let list =
            |folder: &str| fs::read_dir(root.join(folder)).expect("folder").flatten().collect::<Vec<_>>();
        let files = FOLDERS.iter().flat_map(|folder| list(folder)).filter(|entry| entry.path().is_file());
        files.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_page_is_written_only_when_it_changed() {
        let root = tempfile::tempdir().expect("folder");
        let shelf = Shelf::open(root.path()).expect("opens");
        assert_eq!(shelf.put(&page("one")).expect("puts"), Put::Written);
        assert_eq!(shelf.put(&page("one")).expect("puts"), Put::Same);
        assert_eq!(shelf.put(&page("two")).expect("puts"), Put::Written);
        let path = root.path().join(PageName::term("tide").as_str());
        assert_eq!(fs::read_to_string(path).expect("reads"), "two");
        assert_eq!(files(root.path()).len(), 1, "no part is left behind");
    }

    #[test]
    fn removing_twice_and_sweeping_parts_is_fine() {
        let root = tempfile::tempdir().expect("folder");
        let shelf = Shelf::open(root.path()).expect("opens");
        shelf.put(&page("one")).expect("puts");
        fs::write(root.path().join("terms/.x.md.1-1.part"), "half").expect("writes");
        fs::write(root.path().join("terms/mine.md"), "by hand").expect("writes");
        shelf.sweep().expect("sweeps");
        shelf.remove(&page("").name).expect("removes");
        shelf.remove(&page("").name).expect("is content");
        assert_eq!(files(root.path()), ["mine.md"], "what others put there stays");
    }

    #[test]
    fn writers_and_sweepers_at_the_same_time_leave_a_whole_page() {
        let root = tempfile::tempdir().expect("folder");
        let shelf = Shelf::open(root.path()).expect("opens");
        let contents: Vec<String> = (0..4).map(|at| at.to_string().repeat(10_000)).collect();
        std::thread::scope(|scope| {
            for content in &contents {
                let shelf = &shelf;
                scope.spawn(move || (0..20).for_each(|_| assert!(shelf.put(&page(content)).is_ok())));
            }
        });
        let there = fs::read_to_string(root.path().join(page("").name.as_str())).expect("reads");
        assert!(contents.contains(&there));
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_a_clear_error() {
        let root = tempfile::tempdir().expect("folder");
        let file = root.path().join("wiki");
        fs::write(&file, "a file").expect("writes");
        let error = Shelf::open(&file).expect_err("refused").to_string();
        assert!(error.starts_with("cannot write "), "{error}");
    }
}
