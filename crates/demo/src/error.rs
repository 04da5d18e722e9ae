//! Everything that can go wrong in the demo, said to the person whose file it is.
//!
//! Invariant: an error about a file names what was expected and what came, and never shows the file's text.

use std::io;
use std::path::Path;

use crate::library::file;

/// What is read, where a refusal says so.
pub(crate) const READ: &str = "Markdown, text, HTML, CSV, JSON and pictures are read";

/// Why a stage or the library refused. The text is what a dead letter and the closing report show.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder could not be opened, listed or read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The path as the person knows it.
        path: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// A page, a thumbnail or a sample file could not be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The path as the person knows it.
        path: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// No bytes at all.
    #[error("the file is empty")]
    Empty,
    /// Well formed, but with nothing to index.
    #[error("the file holds no text to index")]
    NoText,
    /// Above the limit on bytes; the file is not read.
    #[error("the file has {}, more than the limit of {}", crate::error::Bytes(*.size), crate::error::Bytes(*.limit))]
    TooLarge {
        /// Bytes the file has.
        size: u64,
        /// Bytes that would be read.
        limit: u64,
    },
    /// The name says one thing, the content another.
    #[error("named {named}, but it holds {found}")]
    Mislabelled {
        /// The extension with its dot.
        named: String,
        /// What the first bytes say it is.
        found: &'static str,
    },
    /// A kind of file that no stage reads.
    #[error("{READ}, not {what}")]
    Unsupported {
        /// `.xyz files`, or what the content is when there is no extension.
        what: String,
    },
    /// A symbolic link: following it could leave the folder or never end.
    #[error("a symbolic link, and links are not followed")]
    Link,
    /// A pipe, a socket or a device: opening it could wait for ever.
    #[error("neither a file nor a folder")]
    Special,
    /// Task payloads and pages are UTF-8, so such a name could not travel.
    #[error("the name is not valid UTF-8")]
    Unnameable,
    /// A path that leaves its folder.
    #[error("{path} is not a path below the folder")]
    Outside {
        /// The path as it came.
        path: String,
    },
    /// Bytes that are no UTF-8 and carry no mark of another encoding.
    #[error("not valid UTF-8 at byte {at}")]
    NotUtf8 {
        /// Offset of the first bad byte, from 0.
        at: usize,
    },
    /// A UTF-16 mark, then something that is no UTF-16.
    #[error("not valid UTF-16 at byte {at}")]
    NotUtf16 {
        /// Offset of the first bad unit, from 0.
        at: usize,
    },
    /// Text was expected; a byte came that no text has.
    #[error("binary data where text was expected: 0x{byte:02x} at byte {at}")]
    Binary {
        /// Offset, from 0.
        at: usize,
        /// The byte.
        byte: u8,
    },
    /// Text that breaks the rules of its format.
    #[error("not valid {format} at line {line}, column {column}: {detail}")]
    Malformed {
        /// The format's name.
        format: &'static str,
        /// From 1.
        line: usize,
        /// From 1, in bytes.
        column: usize,
        /// What was expected and what came.
        detail: String,
    },
    /// The content stops in the middle.
    #[error("the {format} is cut off: {detail}")]
    CutOff {
        /// The format's name.
        format: &'static str,
        /// Where it stops and what is missing.
        detail: String,
    },
    /// A bound that keeps one file from using the whole machine.
    #[error("more than {limit} {what}")]
    TooMuch {
        /// What there is too much of, in the plural.
        what: &'static str,
        /// The bound.
        limit: usize,
    },
    /// More text than a document may have; a table with long column names can get there from a smaller file.
    #[error("more than {} of text once it is laid out", crate::error::Bytes(*.limit as u64))]
    TooMuchText {
        /// The bound, in bytes.
        limit: usize,
    },
    /// A picture that does not decode.
    #[error("not a readable {format}: {detail}")]
    Picture {
        /// The format's name.
        format: &'static str,
        /// What the decoder said.
        detail: String,
    },
    /// A picture bomb, or an honest picture too big to decode beside seventeen others.
    #[error(
        "the picture is {width} × {height} points; at most {side_max} a side and {points_max} in all are decoded"
    )]
    PictureTooLarge {
        /// Points across.
        width: u32,
        /// Points down.
        height: u32,
        /// The bound on either side.
        side_max: u32,
        /// The bound on the product.
        points_max: u64,
    },
    /// The caller asked to stop.
    #[error("stopped before the end")]
    Stopped,
    /// The result store answered with an error.
    #[error("the library answered: {0}")]
    Library(#[from] rusqlite::Error),
    /// A library that can be read and not written.
    #[error("cannot write the library {path}: {detail}; make the file and its folder writable")]
    UnwritableLibrary {
        /// The file.
        path: String,
        /// What stands in the way.
        detail: String,
    },
    /// A library that does not open, for a reason that lies outside the file.
    #[error("cannot open the library {path}: {detail}; {cure}")]
    UnopenedLibrary {
        /// The file.
        path: String,
        /// What the system said.
        detail: String,
        /// What a person does about it.
        cure: &'static str,
    },
    /// The library's file was taken away while it was open: what is written now would be lost.
    #[error(
        "the library {path} was deleted or replaced while it was in use; run again, it is made anew from the files"
    )]
    LostLibrary {
        /// Where it was.
        path: String,
    },
    /// The library answers every time with what may pass: a full disk, say, or one that cannot be written.
    #[error(
        "the library {path} fails again and again: {detail}; once that is mended, the same command goes on"
    )]
    FailingLibrary {
        /// The file.
        path: String,
        /// What it said last.
        detail: String,
    },
    /// A library that SQLite cannot read: another kind of file, or a damaged one.
    #[error(
        "cannot use the library {path}: {detail}; delete it and run again, it is made anew from the files"
    )]
    BrokenLibrary {
        /// The file.
        path: String,
        /// What SQLite said.
        detail: String,
    },
    /// A SQLite file, but not one of ours.
    #[error("{path} is a SQLite file of another program (application id {found:#010x}); name another file")]
    ForeignLibrary {
        /// The file.
        path: String,
        /// Its `application_id`.
        found: i32,
    },
    /// A library written by a later version.
    #[error("{path} has library version {found}, this program knows up to {known}; use the newer program")]
    NewerLibrary {
        /// The file.
        path: String,
        /// Its version.
        found: i32,
        /// The newest we know.
        known: i32,
    },
    /// Nothing was ever read into this home.
    #[error("there is no library at {path}: `poolwright demo` makes one")]
    NoLibrary {
        /// Where it would be.
        path: String,
    },
    /// The pools did not start, or their store failed.
    #[error(transparent)]
    Orchestrator(Box<poolwright::Error>),
    /// The first tasks could not be enqueued.
    #[error(transparent)]
    Enqueue(Box<poolwright::client::Error>),
    /// The queues could not be looked at.
    #[error(transparent)]
    Inspect(Box<poolwright::inspector::Error>),
    /// A row that does not decode; only a hand at the file makes one.
    #[error("the library holds {what} {value:?}, which this program does not know")]
    Corrupt {
        /// Which column.
        what: &'static str,
        /// Its value.
        value: String,
    },
}

impl Error {
    /// Whether trying again could not help: the fault lies in the content, not in the moment.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Read { source, .. } => {
                matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
            }
            Self::Write { .. } | Self::Stopped | Self::Library(_) => false,
            Self::UnwritableLibrary { .. } | Self::BrokenLibrary { .. } | Self::LostLibrary { .. } => false,
            Self::UnopenedLibrary { .. } | Self::FailingLibrary { .. } => false,
            Self::Orchestrator(_) | Self::Enqueue(_) | Self::Inspect(_) => false,
            _ => true,
        }
    }

    /// Whether the content could not be looked at, so that nothing is known about it.
    #[must_use]
    pub fn leaves_unknown(&self) -> bool {
        matches!(self, Self::Read { .. } | Self::Stopped)
    }

    /// What the library answered, with its file named where the file is what is wrong.
    pub(crate) fn of_library(self, path: &Path) -> Self {
        use rusqlite::ErrorCode as Code;
        let Self::Library(error) = self else { return self };
        let (path, detail) = (path.display().to_string(), error.to_string());
        match error.sqlite_error_code() {
            Some(Code::ReadOnly) => Self::UnwritableLibrary { path, detail },
            Some(Code::CannotOpen) => Self::UnopenedLibrary { path, detail, cure: file::CURE },
            Some(Code::NotADatabase | Code::DatabaseCorrupt) => Self::BrokenLibrary { path, detail },
            _ if is_damage(&error) => Self::BrokenLibrary { path, detail },
            _ => Self::Library(error),
        }
    }

    /// The same error once more, where the library's file is at fault and stays so until a person acts; of every other
    /// one nothing.
    pub(crate) fn lasting(&self) -> Option<Self> {
        match self {
            Self::UnwritableLibrary { path, detail } => {
                Some(Self::UnwritableLibrary { path: path.clone(), detail: detail.clone() })
            }
            Self::BrokenLibrary { path, detail } => {
                Some(Self::BrokenLibrary { path: path.clone(), detail: detail.clone() })
            }
            Self::LostLibrary { path } => Some(Self::LostLibrary { path: path.clone() }),
            _ => None,
        }
    }

    /// The library does not open because of what the system said about this path.
    pub(crate) fn unopened(path: &Path, why: &io::Error) -> Self {
        let (path, detail) = (path.display().to_string(), why.to_string());
        Self::UnopenedLibrary { path, detail, cure: file::cure(why) }
    }

    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read { path: path.display().to_string(), source }
    }

    pub(crate) fn write(path: &Path, source: io::Error) -> Self {
        Self::Write { path: path.display().to_string(), source }
    }
}

impl From<poolwright::Error> for Error {
    fn from(error: poolwright::Error) -> Self {
        Self::Orchestrator(Box::new(error))
    }
}

impl From<poolwright::client::Error> for Error {
    fn from(error: poolwright::client::Error) -> Self {
        Self::Enqueue(Box::new(error))
    }
}

impl From<poolwright::inspector::Error> for Error {
    fn from(error: poolwright::inspector::Error) -> Self {
        Self::Inspect(Box::new(error))
    }
}

/// Whether a file that SQLite reads is shorter than it should be, or holds other tables or values than ours.
fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{
        FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, SqliteFailure,
    };
    use rusqlite::ffi::SQLITE_IOERR_SHORT_READ;
    let is_table = |text: &str| text.starts_with("no such table") || text.starts_with("no such column");
    match error {
        FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..) => true,
        SqliteFailure(why, _) if why.extended_code == SQLITE_IOERR_SHORT_READ => true,
        other => is_table(&other.to_string()),
    }
}

/// A number of bytes as people say it: `17 bytes`, `20.0 MiB`.
pub(crate) struct Bytes(pub(crate) u64);

impl std::fmt::Display for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const KIB: u64 = 1 << 10;
        const MIB: u64 = 1 << 20;
        match self.0 {
            1 => write!(f, "1 byte"),
            size @ ..KIB => write!(f, "{size} bytes"),
            size @ ..MIB => write!(f, "{}.{} KiB", size / KIB, size % KIB * 10 / KIB),
            size => write!(f, "{}.{} MiB", size / MIB, size % MIB * 10 / MIB),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_people_say_them() {
        let said: Vec<String> =
            [0, 1, 999, 1_536, 20 << 20, 52_428_801].map(|size| Bytes(size).to_string()).into();
        assert_eq!(said, ["0 bytes", "1 byte", "999 bytes", "1.5 KiB", "20.0 MiB", "50.0 MiB"]);
    }

    #[test]
    fn content_is_permanent_and_the_moment_is_not() {
        assert!(Error::Empty.is_permanent());
        assert!(Error::NotUtf8 { at: 17 }.is_permanent());
        let busy =
            rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY), None);
        assert!(!Error::Library(busy).is_permanent());
        let broken = Error::BrokenLibrary { path: "l".into(), detail: "malformed".into() };
        assert!(!broken.is_permanent(), "no document is to blame");
        assert!(!Error::LostLibrary { path: "l".into() }.is_permanent());
        let gone = Error::Read { path: "a.md".into(), source: io::ErrorKind::NotFound.into() };
        assert!(gone.is_permanent() && gone.leaves_unknown());
    }
}
