//! Whether the path still leads to the file that is open.
//!
//! A file that is deleted or replaced lives on for those who have it open. What they write is answered and is gone with
//! them, while newcomers make or find another file under the name; and because both keep their log's index in one file
//! beside it, they disturb each other. So the store stops as soon as it sees that, and goes on if the file comes back.
//!
//! Invariant: what cannot be found out is no reason to stop.

use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use poolwright_broker::Error;
use poolwright_core::Timestamp;

/// How long an answer is good for calls that only look when a look is due: a look costs a microsecond, and there are
/// thousands of calls in a second.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Remembers which file was opened.
#[derive(Debug)]
pub(crate) struct Anchor {
    /// Absolute, so that it means the same when the process changes its directory. Symbolic links are followed anew with
    /// each look, as a newcomer would follow them.
    path: PathBuf,
    /// None where files have no identity that can be asked for: then the path is trusted.
    file: Option<FileId>,
    /// When it was looked for last, by the store's clock.
    looked_micros: AtomicI64,
    lost: AtomicBool,
}

/// What two names of one file have in common, and two files with one name do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

#[cfg(unix)]
fn id_of(meta: &Metadata) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    Some(FileId { device: meta.dev(), inode: meta.ino() })
}

/// Elsewhere the system keeps an open file from being removed.
#[cfg(not(unix))]
fn id_of(_: &Metadata) -> Option<FileId> {
    None
}

impl Anchor {
    /// Remembers the file that this path leads to now: it was just opened.
    pub(crate) fn at(path: &Path, now: Timestamp) -> Self {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let file = fs::metadata(&path).ok().as_ref().and_then(id_of);
        Self { path, file, looked_micros: AtomicI64::new(now.as_micros()), lost: AtomicBool::new(false) }
    }

    /// Looks now. Says once that the file is lost, and once that it is back.
    ///
    /// # Errors
    /// [`Error::Unavailable`] while the path leads elsewhere or nowhere: the same call succeeds when the file is put back,
    /// so a worker keeps what it has to store.
    pub(crate) fn check(&self, now: Timestamp) -> Result<(), Error> {
        self.looked_micros.store(now.as_micros(), Ordering::Relaxed);
        if let Some(holds) = self.holds() {
            let was_lost = self.lost.swap(!holds, Ordering::Relaxed);
            match (holds, was_lost) {
                (false, false) => tracing::error!("{}", self.complaint()),
                (true, true) => tracing::info!(file = %self.path.display(), "the file is where it was again"),
                _ => {}
            }
        }
        match self.lost.load(Ordering::Relaxed) {
            true => Err(Error::Unavailable { why: self.complaint() }),
            false => Ok(()),
        }
    }

    /// Looks when the last look was some time ago, or found the file lost.
    ///
    /// # Errors
    /// Those of [`Anchor::check`].
    pub(crate) fn check_if_due(&self, now: Timestamp) -> Result<(), Error> {
        let looked = Timestamp::from_micros(self.looked_micros.load(Ordering::Relaxed));
        // A clock that was set back says nothing of the age of the last look.
        let is_fresh = looked <= now && now.since(looked) < LOOK_EVERY;
        match is_fresh && !self.lost.load(Ordering::Relaxed) {
            true => Ok(()),
            false => self.check(now),
        }
    }

    /// Whether the path leads to the file; none when that cannot be told.
    fn holds(&self) -> Option<bool> {
        let file = self.file?;
        match fs::metadata(&self.path) {
            Ok(meta) => id_of(&meta).map(|found| found == file),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Some(false)
            }
            Err(_) => None,
        }
    }

    fn complaint(&self) -> String {
        format!(
            "{} was removed or replaced while it was in use, so nothing is stored or read any more; put it back, or \
             restart to go on with what is there now (tasks in the old file stay in it)",
            self.path.display()
        )
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const NOW: Timestamp = Timestamp::from_secs(1_900_000_000);

    #[test]
    fn a_link_is_followed_as_a_newcomer_would() {
        let dir = tempfile::tempdir().unwrap();
        let [one, two, link] = ["one.db", "two.db", "link.db"].map(|name| dir.path().join(name));
        fs::write(&one, "1").unwrap();
        fs::write(&two, "2").unwrap();
        symlink(&one, &link).unwrap();
        let anchor = Anchor::at(&link, NOW);
        assert_eq!(anchor.check(NOW), Ok(()));
        fs::remove_file(&link).unwrap();
        symlink(&two, &link).unwrap();
        assert!(anchor.check(NOW).unwrap_err().is_retryable());
        // A second name of the same file is the same file.
        fs::remove_file(&link).unwrap();
        fs::hard_link(&one, &link).unwrap();
        assert_eq!(anchor.check(NOW), Ok(()));
    }

    #[test]
    fn a_file_that_was_lost_is_looked_for_at_each_call() {
        let dir = tempfile::tempdir().unwrap();
        let [path, away] = ["tasks.db", "away.db"].map(|name| dir.path().join(name));
        fs::write(&path, "").unwrap();
        let anchor = Anchor::at(&path, NOW);
        fs::rename(&path, &away).unwrap();
        assert!(anchor.check(NOW).is_err());
        assert!(anchor.check_if_due(NOW).is_err());
        fs::rename(&away, &path).unwrap();
        assert_eq!(anchor.check_if_due(NOW), Ok(()));
    }

    #[test]
    fn a_look_is_due_after_a_while_and_after_a_leap_of_the_clock() {
        for then in [NOW + LOOK_EVERY, NOW - Duration::from_micros(1)] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("tasks.db");
            fs::write(&path, "").unwrap();
            let anchor = Anchor::at(&path, NOW);
            fs::remove_file(&path).unwrap();
            assert_eq!(anchor.check_if_due(NOW + LOOK_EVERY / 2), Ok(()));
            assert!(anchor.check_if_due(then).is_err());
        }
    }

    #[test]
    fn what_cannot_be_found_out_is_no_reason_to_stop() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tasks.db");
        fs::write(&path, "").unwrap();
        let anchor = Anchor::at(&path, NOW);
        // A name that is too long for the system is neither there nor gone.
        let anchor = Anchor { path: dir.path().join("x".repeat(5_000)), ..anchor };
        assert_eq!(anchor.check(NOW), Ok(()));
        let never_known = Anchor { file: None, path: dir.path().join("gone.db"), ..anchor };
        assert_eq!(never_known.check(NOW), Ok(()));
    }
}
