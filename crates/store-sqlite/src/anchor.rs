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
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use poolwright_broker::Error;

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
    opened: Instant,
    /// The time of the last look, in microseconds after `opened`.
    looked_us: AtomicU64,
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
    pub(crate) fn at(path: &Path) -> Self {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let file = fs::metadata(&path).ok().as_ref().and_then(id_of);
        let (looked_us, lost) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { path, file, opened: Instant::now(), looked_us, lost }
    }

    /// Looks now. Says once that the file is lost, and once that it is back.
    ///
    /// # Errors
    /// [`Error::Unavailable`] while the path leads elsewhere or nowhere: the same call succeeds when the file is put back,
    /// so a worker keeps what it has to store.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.looked_us.store(self.age_us(), Ordering::Relaxed);
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
    pub(crate) fn check_if_due(&self) -> Result<(), Error> {
        let age_us = self.age_us().saturating_sub(self.looked_us.load(Ordering::Relaxed));
        match self.lost.load(Ordering::Relaxed) || Duration::from_micros(age_us) >= LOOK_EVERY {
            true => self.check(),
            false => Ok(()),
        }
    }

    fn age_us(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_micros()).unwrap_or(u64::MAX)
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

    #[test]
    fn a_link_is_followed_as_a_newcomer_would() {
        let dir = tempfile::tempdir().unwrap();
        let [one, two, link] = ["one.db", "two.db", "link.db"].map(|name| dir.path().join(name));
        fs::write(&one, "1").unwrap();
        fs::write(&two, "2").unwrap();
        symlink(&one, &link).unwrap();
        let anchor = Anchor::at(&link);
        assert_eq!(anchor.check(), Ok(()));
        fs::remove_file(&link).unwrap();
        symlink(&two, &link).unwrap();
        assert!(anchor.check().unwrap_err().is_retryable());
        // A second name of the same file is the same file.
        fs::remove_file(&link).unwrap();
        fs::hard_link(&one, &link).unwrap();
        assert_eq!(anchor.check(), Ok(()));
    }

    #[test]
    fn a_file_that_was_lost_is_looked_for_at_each_call() {
        let dir = tempfile::tempdir().unwrap();
        let [path, away] = ["tasks.db", "away.db"].map(|name| dir.path().join(name));
        fs::write(&path, "").unwrap();
        let anchor = Anchor::at(&path);
        fs::rename(&path, &away).unwrap();
        assert!(anchor.check().is_err());
        assert!(anchor.check_if_due().is_err());
        fs::rename(&away, &path).unwrap();
        assert_eq!(anchor.check_if_due(), Ok(()));
    }

    #[test]
    fn what_cannot_be_found_out_is_no_reason_to_stop() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tasks.db");
        fs::write(&path, "").unwrap();
        let anchor = Anchor::at(&path);
        // A name that is too long for the system is neither there nor gone.
        let anchor = Anchor { path: dir.path().join("x".repeat(5_000)), ..anchor };
        assert_eq!(anchor.check(), Ok(()));
        let never_known = Anchor { file: None, path: dir.path().join("gone.db"), ..anchor };
        assert_eq!(never_known.check(), Ok(()));
    }
}
