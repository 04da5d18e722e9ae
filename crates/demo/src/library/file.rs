//! The library's file as the system sees it: whether it is still the one that was opened, and why it does not open.

use std::fs::{Metadata, OpenOptions, metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Which file it is, whatever its name: the one that was deleted and the one that took its place differ. Where the
/// system tells no such number, every file that is there counts as the one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileId(Option<(u64, u64)>);

impl FileId {
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        metadata(path).map(|found| Self(number(&found)))
    }

    /// Whether this file still lies there. One that cannot be looked at may be it.
    pub(super) fn is_at(self, path: &Path) -> bool {
        match Self::of(path) {
            Ok(found) => found == self,
            Err(why) => !matches!(why.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        }
    }
}

#[cfg(unix)]
fn number(found: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn number(_: &Metadata) -> Option<(u64, u64)> {
    None
}

/// What stands in the way of opening the file, and at which one: SQLite keeps a log and its index beside it.
///
/// Only for a file that nobody here has open: to close one gives back the locks that this process has on it.
pub(super) fn obstacle(path: &Path) -> Option<(PathBuf, io::Error)> {
    ["", "-wal", "-shm"].into_iter().find_map(|end| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        let name = PathBuf::from(name);
        let is_it = end.is_empty();
        let tried = OpenOptions::new().read(true).write(true).create(is_it).truncate(false).open(&name);
        let why = tried.err().filter(|why| is_it || why.kind() != ErrorKind::NotFound)?;
        Some((name, why))
    })
}

/// What a person does about it.
pub(crate) fn cure(why: &io::Error) -> &'static str {
    match why.kind() {
        ErrorKind::PermissionDenied => "let this user read and write it and its folder",
        ErrorKind::IsADirectory => "move that directory away",
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
            "a file lies where a folder of its path should be: move that file away"
        }
        ErrorKind::ReadOnlyFilesystem => "make its file system writable, or work in another folder",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room on its disk",
        _ if is_out_of_files(why) => {
            "too many files are open: end other programs, or raise the limit (`ulimit -n`)"
        }
        _ => CURE,
    }
}

/// The cure of what SQLite does not explain.
pub(crate) const CURE: &str =
    "see that this user may read and write in its folder, and that files may still be opened (`ulimit -n`)";

/// ENFILE and EMFILE, which have these numbers on every Unix.
fn is_out_of_files(why: &io::Error) -> bool {
    cfg!(unix) && matches!(why.raw_os_error(), Some(23 | 24))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_obstacle_has_its_own_cure() {
        let cures = [
            (io::Error::from(ErrorKind::PermissionDenied), "let this user read and write"),
            (io::Error::from(ErrorKind::IsADirectory), "move that directory away"),
            (io::Error::from(ErrorKind::NotADirectory), "a file lies where a folder"),
            (io::Error::from(ErrorKind::StorageFull), "make room"),
            (io::Error::from(ErrorKind::Other), "see that this user"),
        ];
        for (why, expected) in cures {
            assert!(cure(&why).starts_with(expected), "{why}: {}", cure(&why));
        }
        if cfg!(unix) {
            assert!(cure(&io::Error::from_raw_os_error(24)).starts_with("too many files are open"));
        }
    }

    #[test]
    fn a_file_that_took_the_place_of_another_is_not_that_one() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("a");
        std::fs::write(&path, "one").expect("writes");
        let id = FileId::of(&path).expect("is there");
        std::fs::write(&path, "other content").expect("writes");
        assert!(id.is_at(&path), "it is the same file");
        let other = folder.path().join("b");
        std::fs::write(&other, "two").expect("writes");
        std::fs::rename(&other, &path).expect("replaces");
        assert_eq!(id.is_at(&path), cfg!(not(unix)));
        std::fs::remove_file(&path).expect("removes");
        assert!(!id.is_at(&path));
    }

    #[test]
    fn an_obstacle_beside_the_file_is_found_and_named() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("library.db");
        assert!(obstacle(&path).is_none(), "a new file can be made there");
        std::fs::create_dir(folder.path().join("library.db-wal")).expect("makes");
        let (at, why) = obstacle(&path).expect("a directory");
        assert_eq!((at, why.kind()), (folder.path().join("library.db-wal"), ErrorKind::IsADirectory));
    }
}
