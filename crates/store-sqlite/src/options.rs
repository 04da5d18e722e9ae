//! All knobs of the store, their defaults, and how a URL sets them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use poolwright_core::clock::SystemClock;
use poolwright_core::{Chance, Clock};

use crate::Error;

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// An answered call is on the disk: it survives a power cut. One sync for each group of calls.
    #[default]
    Full,
    /// An answered call survives a crash of the process; a power cut may take the last moments. Several times as
    /// many single writes a second.
    Normal,
}

impl Synchronous {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Normal => "normal",
        }
    }
}

/// How a file is opened as a store.
#[derive(Debug, Clone)]
pub struct Options {
    /// The file. Created when it is not there.
    pub path: PathBuf,
    /// What a commit waits for. Default: [`Synchronous::Full`].
    pub synchronous: Synchronous,
    /// How long a call waits while another process writes. Default: 30 s.
    pub busy_wait: Duration,
    /// How often a process that waits for work looks whether another one has written. Default: 10 ms, at least 1 ms.
    pub wake_interval: Duration,
    /// Whether missing directories above the file are created. Default: yes.
    pub create_parents: bool,
    /// The file does not grow beyond this; then calls that need room are refused as with a full disk. Rounded down
    /// to whole pages of 4 KiB. Default: none.
    pub file_bytes_max: Option<u64>,
    /// The store's clock. Processes on one file must have the same. Default: the system's.
    pub clock: Arc<dyn Clock>,
    /// Where tokens come from. Default: seeded by the system.
    pub chance: Chance,
}

/// What a URL may set, for messages.
const PARAMETERS: &str = "synchronous=full|normal, busy_wait_ms, wake_interval_ms, file_bytes_max";

impl Options {
    /// The defaults for this file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            synchronous: Synchronous::Full,
            busy_wait: Duration::from_secs(30),
            wake_interval: Duration::from_millis(10),
            create_parents: true,
            file_bytes_max: None,
            clock: Arc::new(SystemClock),
            chance: Chance::from_entropy(),
        }
    }

    /// Reads `sqlite://PATH` or `sqlite:PATH`, relative or absolute, percent-decoded, with parameters:
    ///
    /// | Parameter | Sets |
    /// | --- | --- |
    /// | `synchronous=full` or `normal` | [`Options::synchronous`] |
    /// | `busy_wait_ms=30000` | [`Options::busy_wait`] |
    /// | `wake_interval_ms=10` | [`Options::wake_interval`] |
    /// | `file_bytes_max=1000000000` | [`Options::file_bytes_max`] |
    ///
    /// # Errors
    /// [`Error::BadUrl`] for another scheme, no path, `:memory:`, an unknown parameter or a bad value.
    pub fn from_url(url: &str) -> Result<Self, Error> {
        let bad = |why: String| Error::BadUrl { url: url.to_owned(), why };
        let Some(rest) = url.strip_prefix("sqlite:") else {
            return Err(bad("expected sqlite://PATH or sqlite:PATH".to_owned()));
        };
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let path = decode(path).map_err(bad)?;
        if path == ":memory:" {
            return Err(bad("a store in memory that nobody shares is `memory:`".to_owned()));
        }
        if path.is_empty() || path.ends_with('/') {
            return Err(bad("it names no file, expected something like sqlite://tasks.db".to_owned()));
        }
        let mut options = Self::new(path);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            options.set(name, &decode(value).map_err(bad)?).map_err(bad)?;
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let number = || {
            let parsed = value.parse::<u64>();
            parsed.map_err(|_| format!("{name} is a whole number, this is `{value}`"))
        };
        match (name, value) {
            ("synchronous", "full") => self.synchronous = Synchronous::Full,
            ("synchronous", "normal") => self.synchronous = Synchronous::Normal,
            ("synchronous", _) => return Err(format!("synchronous is full or normal, this is `{value}`")),
            ("busy_wait_ms", _) => self.busy_wait = Duration::from_millis(number()?),
            ("wake_interval_ms", _) => self.wake_interval = Duration::from_millis(number()?.max(1)),
            ("file_bytes_max", _) => self.file_bytes_max = Some(number()?),
            _ => return Err(format!("unknown parameter `{name}`, there are {PARAMETERS}")),
        }
        Ok(())
    }
}

/// Resolves `%20` and its like.
fn decode(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first != b'%' {
            bytes.push(first);
            rest = tail;
            continue;
        }
        let digits = tail.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits.filter(|two| two.bytes().all(|b| b.is_ascii_hexdigit()));
        let byte = byte.and_then(|two| u8::from_str_radix(two, 16).ok());
        let Some(byte) = byte else {
            return Err("after % two hexadecimal digits are expected; a plain % is written %25".to_owned());
        };
        bytes.push(byte);
        rest = &tail[2..];
    }
    if bytes.contains(&0) {
        return Err("a path cannot hold a zero byte".to_owned());
    }
    String::from_utf8(bytes).map_err(|_| "the decoded path is no UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(url: &str) -> PathBuf {
        Options::from_url(url).unwrap().path
    }

    fn why(url: &str) -> String {
        Options::from_url(url).unwrap_err().to_string()
    }

    #[test]
    fn relative_and_absolute_paths_are_told_apart_by_their_slashes() {
        assert_eq!(path("sqlite://tasks.db"), PathBuf::from("tasks.db"));
        assert_eq!(path("sqlite:tasks.db"), PathBuf::from("tasks.db"));
        assert_eq!(path("sqlite:///var/lib/tasks.db"), PathBuf::from("/var/lib/tasks.db"));
        assert_eq!(path("sqlite:/var/lib/tasks.db"), PathBuf::from("/var/lib/tasks.db"));
        assert_eq!(path("sqlite://./a/../b.db"), PathBuf::from("./a/../b.db"));
    }

    #[test]
    fn a_path_is_percent_decoded() {
        assert_eq!(path("sqlite://my%20tasks%3f.db"), PathBuf::from("my tasks?.db"));
        assert!(why("sqlite://100%.db").contains("%25"));
        assert!(why("sqlite://a%00b.db").contains("zero byte"));
    }

    #[test]
    fn parameters_set_what_they_say() {
        let options = Options::from_url(
            "sqlite://t.db?synchronous=normal&busy_wait_ms=5&wake_interval_ms=0&file_bytes_max=8192",
        )
        .unwrap();
        assert_eq!(options.synchronous, Synchronous::Normal);
        assert_eq!(options.busy_wait, Duration::from_millis(5));
        assert_eq!(options.wake_interval, Duration::from_millis(1));
        assert_eq!(options.file_bytes_max, Some(8_192));
        assert_eq!(Options::from_url("sqlite://t.db").unwrap().synchronous, Synchronous::Full);
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_cure() {
        assert!(
            why("sqlite://t.db?sync=off").contains("unknown parameter `sync`, there are synchronous=full")
        );
        assert!(why("sqlite://t.db?synchronous=off").contains("full or normal, this is `off`"));
        assert!(why("sqlite://t.db?busy_wait_ms=1s").contains("whole number, this is `1s`"));
        assert!(why("sqlite::memory:").contains("`memory:`"));
        assert!(why("sqlite://").contains("names no file"));
        assert!(why("redis://localhost").contains("expected sqlite://PATH"));
    }
}
