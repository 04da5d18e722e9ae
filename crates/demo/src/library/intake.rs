//! What the sync writes: documents that came, changed and went, and files that were skipped.

use rusqlite::{Connection, OptionalExtension};

use super::{Library, Status, content, pages, record};
use crate::Error;
use crate::id::{DocumentId, Generation, Key, SourceId};
use crate::kind::Kind;
use crate::stage::scan::{Found, Known, Skipped};

/// A document that waits for its task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// What the task carries.
    pub key: Key,
    /// Which task it needs.
    pub kind: Kind,
    /// Below the folder.
    pub path: String,
    /// Pending when it is new; further on when an interrupted run goes on.
    pub status: Status,
}

impl Library {
    /// The files of a source as they were admitted last.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn known(&self, source: &SourceId) -> Result<Vec<Known>, Error> {
        self.read(|connection| {
            let sql = "SELECT path, hash, status FROM documents WHERE source = ?1 ORDER BY path";
            let mut statement = connection.prepare_cached(sql)?;
            let known = statement.query_map([source], |row| {
                let status: Status = row.get(2)?;
                Ok(Known { path: row.get(0)?, hash: row.get(1)?, settled: status.is_settled() })
            })?;
            Ok(known.collect::<Result<_, _>>()?)
        })
    }

    /// Whether the work on every file of a source has ended, well or badly.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn is_settled(&self, source: &SourceId) -> Result<bool, Error> {
        self.read(|connection| {
            let sql = "SELECT NOT EXISTS
                       (SELECT 1 FROM documents WHERE source = ?1 AND status NOT IN ('completed', 'failed'))";
            Ok(connection.prepare_cached(sql)?.query_row([source], |row| row.get(0))?)
        })
    }

    /// The same over all sources.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn is_all_settled(&self) -> Result<bool, Error> {
        self.read(|connection| {
            let sql =
                "SELECT NOT EXISTS (SELECT 1 FROM documents WHERE status NOT IN ('completed', 'failed'))";
            Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
        })
    }

    /// The same of the source that this document is of; true when the document is gone.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn is_settled_around(&self, document: &DocumentId) -> Result<bool, Error> {
        self.read(|connection| {
            let sql = "SELECT NOT EXISTS
                       (SELECT 1 FROM documents WHERE source = (SELECT source FROM documents WHERE id = ?1)
                        AND status NOT IN ('completed', 'failed'))";
            Ok(connection.prepare_cached(sql)?.query_row([document], |row| row.get(0))?)
        })
    }

    /// Takes a file in. Content that is known keeps its generation and status, so a sync that runs again changes
    /// nothing; other content begins a new generation. The old content stays searchable until the new is stored.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn admit(&self, source: &SourceId, found: &Found) -> Result<Admitted, Error> {
        let document = DocumentId::of(source, &found.path);
        self.write(|connection| {
            let sql = "SELECT id, generation, source, path, kind, hash, status, reason, title FROM documents WHERE id = ?1";
            let known = connection.prepare_cached(sql)?.query_row([&document], record).optional()?;
            if let Some(known) = known.filter(|known| known.hash == found.hash && known.kind == found.kind) {
                return Ok(Admitted { key: known.key, kind: known.kind, path: known.path, status: known.status });
            }
            let generation = next_generation(connection)?;
            let sql = "INSERT INTO documents (id, source, path, kind, hash, generation, status)
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                       ON CONFLICT (id) DO UPDATE SET kind = ?4, hash = ?5, generation = ?6, status = ?7, reason = NULL";
            let row = (&document, source, &found.path, found.kind, &found.hash, generation, Status::Pending);
            connection.prepare_cached(sql)?.execute(row)?;
            content::forget_parts(connection, &document)?;
            let key = Key { document: document.clone(), generation };
            Ok(Admitted { key, kind: found.kind, path: found.path.clone(), status: Status::Pending })
        })
    }

    /// Removes a file and all that came of it. Tells whether it was known.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn remove(&self, source: &SourceId, path: &str) -> Result<bool, Error> {
        let document = DocumentId::of(source, path);
        self.write(|connection| {
            content::clear(connection, &document)?;
            let removed =
                connection.prepare_cached("DELETE FROM documents WHERE id = ?1")?.execute([&document])?;
            if removed > 0 {
                pages::mark(connection, &document)?;
            }
            Ok(removed > 0)
        })
    }

    /// Writes down what the walk of a source left out, in place of what an earlier walk left out.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn record_skips(&self, source: &SourceId, skipped: &[Skipped]) -> Result<(), Error> {
        self.write(|connection| {
            connection.prepare_cached("DELETE FROM skips WHERE source = ?1")?.execute([source])?;
            let mut insert = connection.prepare_cached("INSERT OR REPLACE INTO skips VALUES (?1, ?2, ?3)")?;
            for skip in skipped {
                insert.execute((source, &skip.path, skip.reason.to_string()))?;
            }
            Ok(())
        })
    }

    /// Begins again what failed in a source: documents, and parts of documents.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn retry_failed(&self, source: &SourceId) -> Result<Vec<Admitted>, Error> {
        self.write(|connection| {
            let sql = "SELECT id, kind, path FROM documents WHERE source = ?1 AND (status = 'failed' OR EXISTS
                       (SELECT 1 FROM parts WHERE document = documents.id AND state = 'failed')) ORDER BY path";
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map([source], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            let failed: Vec<(DocumentId, Kind, String)> = rows.collect::<Result<_, _>>()?;
            failed.into_iter().map(|(document, kind, path)| again(connection, document, kind, path)).collect()
        })
    }
}

fn again(connection: &Connection, document: DocumentId, kind: Kind, path: String) -> Result<Admitted, Error> {
    let generation = next_generation(connection)?;
    let sql = "UPDATE documents SET generation = ?2, status = ?3, reason = NULL WHERE id = ?1";
    connection.prepare_cached(sql)?.execute((&document, generation, Status::Pending))?;
    content::forget_parts(connection, &document)?;
    Ok(Admitted { key: Key { document, generation }, kind, path, status: Status::Pending })
}

fn next_generation(connection: &Connection) -> Result<Generation, Error> {
    let sql = "UPDATE generations SET last = last + 1 RETURNING last";
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}
