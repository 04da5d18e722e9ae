//! Whether the write-ahead log has changed, by what the file system says of it: a hundredth of what asking SQLite costs.
//!
//! A file's time of change comes in steps of some milliseconds, so that two commits may bear the same one, and the second would
//! not be seen. So a change is believed for a while after it was seen; and where the file system is not to be believed at
//! all, the question is put to SQLite from time to time.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// So many looks after a change the log counts as changed: at the shortest interval longer than any step of the time.
const LOOKS_AFTER_CHANGE: u32 = 20;

/// Every so many looks it counts as changed whatever the file system says.
const LOOKS_BETWEEN: u32 = 10;

/// What the file system says of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: SystemTime,
    bytes: u64,
}

/// The log as it was seen last.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    seen: Option<Stamp>,
    /// Looks that are still to count as a change.
    fresh: u32,
    /// Looks since the last that counted.
    quiet: u32,
}

impl Log {
    /// The log of this file.
    pub(super) fn of(file: &Path) -> Self {
        let mut path = file.as_os_str().to_owned();
        path.push("-wal");
        Self { path: path.into(), seen: None, fresh: 0, quiet: 0 }
    }

    /// It has changed since the last look, or may have. Something that cannot be looked at may always have.
    pub(super) fn may_have_changed(&mut self) -> bool {
        let stamp = fs::metadata(&self.path)
            .and_then(|meta| Ok(Stamp { modified: meta.modified()?, bytes: meta.len() }));
        let stamp = stamp.ok();
        if stamp.is_none() || stamp != self.seen {
            self.seen = stamp;
            self.fresh = LOOKS_AFTER_CHANGE;
        } else if self.fresh > 0 {
            self.fresh -= 1;
        } else if self.quiet + 1 < LOOKS_BETWEEN {
            self.quiet += 1;
            return false;
        }
        self.quiet = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_believed_for_a_while_and_silence_not_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("tasks.db");
        let mut log = Log::of(&file);
        assert!(
            log.may_have_changed() && log.may_have_changed(),
            "what is not there may always have changed"
        );
        fs::write(dir.path().join("tasks.db-wal"), "one").unwrap();
        for look in 0..=LOOKS_AFTER_CHANGE {
            assert!(log.may_have_changed(), "look {look}");
        }
        for _ in 0..3 {
            let looks: Vec<bool> = (0..LOOKS_BETWEEN).map(|_| log.may_have_changed()).collect();
            assert_eq!(looks.iter().filter(|changed| **changed).count(), 1, "{looks:?}");
        }
        fs::write(dir.path().join("tasks.db-wal"), "another").unwrap();
        assert!(log.may_have_changed());
    }
}
