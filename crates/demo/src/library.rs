//! The result store: one SQLite file with everything that the stages found.
//!
//! ```text
//!            admit             begin            expect_parts          last part done
//!   (new) ─────────► pending ─────────► processing ─────────► finalizing ─────────► completed
//!              ▲        │                   │    └── store_picture ────────────────────▲
//!              │        └─────── fail ──────┴────────────┬───────────────┘
//!     admit of other content, retry_failed             failed ─────── begin ───────► processing
//! ```
//!
//! Invariant: every write of a task is one transaction that presents the document's generation. An old generation
//! changes nothing ([`Applied::Stale`]), a task that runs again changes nothing ([`Applied::Already`]); so a run that
//! is killed at any moment and begun again ends with the rows of a calm one.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::id::{ChunkId, ContentHash, DocumentId, Generation, Key, SourceId};
use crate::kind::Kind;

mod content;
pub(crate) mod file;
mod intake;
mod pages;
mod parts;
mod report;
mod schema;
mod search;

use file::FileId;

pub use intake::Admitted;
pub use pages::Dirty;
pub use parts::Part;
pub use report::{Counts, Failed};
pub use search::{Hit, MARK};

/// The result store. Shared by reference; calls block, so async code makes them on a blocking thread.
#[derive(Debug)]
pub struct Library {
    path: PathBuf,
    writer: Mutex<Connection>,
    /// Connections that nobody reads with just now. One more is opened when all are in use, so that a long look waits
    /// for none and none waits for it; there are as many as ever read at the same time.
    readers: Mutex<Vec<Connection>>,
    /// The file that was opened. Deleted, it would take everything that is written and lose it at the end.
    file: FileId,
    /// What was found to be wrong with the file, and stays so until a person acts.
    fault: Mutex<Option<Error>>,
}

/// What a keyed write did.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// The rows are written.
    Done,
    /// They were there; an earlier run of the task wrote them.
    Already,
    /// The document is gone or has a newer generation, or nobody waits for this part.
    Stale,
}

/// Where a document is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Admitted; nobody has begun.
    Pending,
    /// Being read.
    Processing,
    /// Read and searchable; its parts (summary, questions, graph) are being made.
    Finalizing,
    /// All parts have ended.
    Completed,
    /// It could not be read; it has a reason and no content.
    Failed,
}

impl Status {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Pending, "pending"),
        (Self::Processing, "processing"),
        (Self::Finalizing, "finalizing"),
        (Self::Completed, "completed"),
        (Self::Failed, "failed"),
    ];

    /// The word in rows and reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(status, _)| *status == self).map_or("", |(_, word)| word)
    }

    /// Whether the work on this content has ended.
    #[must_use]
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }

    fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, other)| *other == word).map(|(status, _)| *status)
    }
}

/// Why a document or a part of it has no result: what its dead letter says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The type of the task that failed.
    pub task_type: String,
    /// The class of its error, as the queue calls it.
    pub class: String,
    /// What it said, for a person.
    pub reason: String,
}

/// A document as the library knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Id and generation: what a task for it carries.
    pub key: Key,
    /// The folder.
    pub source: SourceId,
    /// Below the folder, with `/`.
    pub path: String,
    /// Its kind.
    pub kind: Kind,
    /// Of the content that was admitted.
    pub hash: ContentHash,
    /// Where it is on its way.
    pub status: Status,
    /// Why it failed.
    pub reason: Option<String>,
    /// Its title, once it was read.
    pub title: Option<String>,
}

impl Library {
    /// Opens the file, making it and its folder if need be. Several processes may have it open.
    ///
    /// # Errors
    /// When the folder or file cannot be made, cannot be written, is no SQLite file, belongs to another program, or is
    /// of a newer version of this one.
    pub fn open(path: &Path) -> Result<Self, Error> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(|why| Error::unopened(folder, &why))?;
        }
        Self::connect(path).map_err(|error| match error.of_library(path) {
            unopened @ Error::UnopenedLibrary { .. } => {
                file::obstacle(path).map_or(unopened, |(at, why)| Error::unopened(&at, &why))
            }
            other => other,
        })
    }

    fn connect(path: &Path) -> Result<Self, Error> {
        let mut writer = schema::connect(path)?;
        schema::prepare(&mut writer, path)?;
        let readers = Mutex::new(vec![schema::connect_to_read(path)?]);
        let file = FileId::of(path).map_err(|why| Error::unopened(path, &why))?;
        Ok(Self {
            path: path.to_path_buf(),
            writer: Mutex::new(writer),
            readers,
            file,
            fault: Mutex::default(),
        })
    }

    /// What was found to be wrong with the file, so that nothing that uses it can go on.
    pub(crate) fn fault(&self) -> Option<Error> {
        lock(&self.fault).as_ref().and_then(Error::lasting)
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A document, or nothing when it is unknown or was removed.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn record(&self, document: &DocumentId) -> Result<Option<Record>, Error> {
        self.read(|connection| {
            let sql = "SELECT id, generation, source, path, kind, hash, status, reason, title FROM documents WHERE id = ?1";
            let mut statement = connection.prepare_cached(sql)?;
            Ok(statement.query_row([document], record).optional()?)
        })
    }

    /// Where the file of a document lies below its folder; nothing when the document is unknown.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn path_of(&self, document: &DocumentId) -> Result<Option<String>, Error> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached("SELECT path FROM documents WHERE id = ?1")?;
            Ok(statement.query_row([document], |row| row.get(0)).optional()?)
        })
    }

    /// One transaction that takes the write lock at its begin, so that it never has to give up half-way.
    fn write<T>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, Error>) -> Result<T, Error> {
        self.named(self.is_in_place().and_then(|()| self.write_unnamed(work)))
    }

    fn write_unnamed<T>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, Error>) -> Result<T, Error> {
        let mut connection = lock(&self.writer);
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = work(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }

    /// One snapshot.
    fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Error>) -> Result<T, Error> {
        self.named(self.is_in_place().and_then(|()| self.read_unnamed(work)))
    }

    fn read_unnamed<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Error>) -> Result<T, Error> {
        let idle = lock(&self.readers).pop();
        let mut connection = idle.map_or_else(|| schema::connect_to_read(&self.path), Ok)?;
        let done = {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Deferred)?;
            work(&transaction)
        };
        lock(&self.readers).push(connection);
        done
    }

    /// SQLite goes on with a file that has lost its name, and at the end nothing of it is left.
    fn is_in_place(&self) -> Result<(), Error> {
        if self.file.is_at(&self.path) {
            Ok(())
        } else {
            Err(Error::LostLibrary { path: self.path.display().to_string() })
        }
    }

    /// An error that is about the file says which file that is, and is remembered where it stays.
    fn named<T>(&self, done: Result<T, Error>) -> Result<T, Error> {
        done.map_err(|error| {
            let error = error.of_library(&self.path);
            if let Some(fault) = error.lasting() {
                lock(&self.fault).get_or_insert(fault);
            }
            error
        })
    }
}

/// A panic under the lock rolled its transaction back, so the connection behind it is sound.
fn lock<T>(connection: &Mutex<T>) -> MutexGuard<'_, T> {
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The status of the document if this is still its generation.
fn status_of(connection: &Connection, key: &Key) -> Result<Option<Status>, Error> {
    let sql = "SELECT status FROM documents WHERE id = ?1 AND generation = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_row((&key.document, key.generation), |row| row.get(0)).optional()?)
}

fn set_status(connection: &Connection, document: &DocumentId, status: Status) -> Result<(), Error> {
    let sql = "UPDATE documents SET status = ?2, reason = NULL WHERE id = ?1";
    connection.prepare_cached(sql)?.execute((document, status))?;
    Ok(())
}

fn record(row: &rusqlite::Row<'_>) -> rusqlite::Result<Record> {
    Ok(Record {
        key: Key { document: row.get(0)?, generation: row.get(1)? },
        source: row.get(2)?,
        path: row.get(3)?,
        kind: row.get(4)?,
        hash: row.get(5)?,
        status: row.get(6)?,
        reason: row.get(7)?,
        title: row.get(8)?,
    })
}

/// Words of ours as columns: written by `as_str`, read by a function that knows the words.
macro_rules! as_word {
    ($type:ty, $parse:expr) => {
        impl ToSql for $type {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(ToSqlOutput::from(self.as_str()))
            }
        }

        impl FromSql for $type {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                let word = value.as_str()?;
                let parse: fn(&str) -> Option<$type> = $parse;
                parse(word).ok_or_else(|| FromSqlError::Other(format!("unknown word {word:?}").into()))
            }
        }
    };
}

as_word!(Status, Status::parse);
as_word!(Kind, Kind::parse);
as_word!(DocumentId, |text| Some(DocumentId::from(text.to_owned())));
as_word!(ChunkId, |text| Some(ChunkId::from(text.to_owned())));
as_word!(SourceId, |text| Some(SourceId::from(text.to_owned())));
as_word!(ContentHash, |text| Some(ContentHash::from(text.to_owned())));

impl ToSql for Generation {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

impl FromSql for Generation {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_i64().map(Self)
    }
}

/// A column of JSON that we wrote.
fn json<T: serde::de::DeserializeOwned>(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|e| {
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(e))
    })
}

fn to_json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("plain data with text keys always has a JSON form")
}
