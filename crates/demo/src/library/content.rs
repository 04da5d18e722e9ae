//! What reading a file writes: chunks and their words, link targets, or a picture.

use rusqlite::{Connection, OptionalExtension};

use super::search::spread;
use super::{Applied, Library, Status, Trouble, pages, set_status, status_of, to_json};
use crate::Error;
use crate::id::{ChunkId, DocumentId, Key};
use crate::stage::chunk::Chunk;
use crate::stage::image::Picture;
use crate::stage::question::BATCH_CHUNKS;
use crate::stage::read::Document;

impl Library {
    /// Says that reading has begun. A failed document begins again: somebody replays its dead letter.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn begin(&self, key: &Key) -> Result<Applied, Error> {
        self.write(|connection| match status_of(connection, key)? {
            None => Ok(Applied::Stale),
            Some(Status::Pending | Status::Failed) => {
                set_status(connection, &key.document, Status::Processing)?;
                Ok(Applied::Done)
            }
            Some(_) => Ok(Applied::Already),
        })
    }

    /// Stores what a document holds in place of what it held. It is searchable at once, and `processing` until
    /// [`expect_parts`](Self::expect_parts).
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn store_content(&self, key: &Key, document: &Document, chunks: &[Chunk]) -> Result<Applied, Error> {
        self.write(|connection| {
            let applied = replace(connection, key)?;
            if applied != Applied::Done {
                return Ok(applied);
            }
            insert_chunks(connection, &key.document, chunks)?;
            insert_targets(connection, &key.document, document)?;
            let sql = "UPDATE documents SET title = ?2, notes = ?3 WHERE id = ?1";
            let row = (&key.document, &document.title, to_json(&document.notes));
            connection.prepare_cached(sql)?.execute(row)?;
            set_status(connection, &key.document, Status::Processing)?;
            Ok(Applied::Done)
        })
    }

    /// Stores what a picture shows; that completes it.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn store_picture(&self, key: &Key, picture: &Picture) -> Result<Applied, Error> {
        self.write(|connection| {
            let applied = replace(connection, key)?;
            if applied != Applied::Done {
                return Ok(applied);
            }
            let sql = "INSERT INTO pictures VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            connection.prepare_cached(sql)?.execute((
                &key.document,
                picture.width,
                picture.height,
                to_json(&picture.average),
                to_json(&picture.colours),
                &picture.thumbnail,
            ))?;
            let sql = "UPDATE documents SET title = path, notes = '[]' WHERE id = ?1";
            connection.prepare_cached(sql)?.execute([&key.document])?;
            set_status(connection, &key.document, Status::Completed)?;
            Ok(Applied::Done)
        })
    }

    /// Ends the work on a document. A failed document has no content.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn fail(&self, key: &Key, trouble: &Trouble) -> Result<Applied, Error> {
        self.write(|connection| match status_of(connection, key)? {
            None => Ok(Applied::Stale),
            Some(status) if status.is_settled() => Ok(Applied::Already),
            Some(_) => {
                clear(connection, &key.document)?;
                let sql = "UPDATE documents SET status = ?2, task_type = ?3, class = ?4, reason = ?5, content = NULL
                           WHERE id = ?1";
                let Trouble { task_type, class, reason } = trouble;
                let row = (&key.document, Status::Failed, task_type, class, reason);
                connection.prepare_cached(sql)?.execute(row)?;
                pages::mark(connection, &key.document)?;
                Ok(Applied::Done)
            }
        })
    }

    /// The chunks of a document in order; nothing when the generation is stale.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn chunks(&self, key: &Key) -> Result<Option<Vec<Chunk>>, Error> {
        self.chunks_between(key, 0, u32::MAX)
    }

    /// The ids of the chunks of a document in order; nothing when the generation is stale.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn chunk_ids(&self, key: &Key) -> Result<Option<Vec<ChunkId>>, Error> {
        self.read(|connection| {
            if status_of(connection, key)?.is_none() {
                return Ok(None);
            }
            let sql = "SELECT id FROM chunks WHERE document = ?1 ORDER BY ordinal";
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map([&key.document], |row| row.get(0))?;
            Ok(Some(rows.collect::<Result<_, _>>()?))
        })
    }

    /// The chunks of one batch of questions, of [`BATCH_CHUNKS`]; nothing when the generation is stale.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn batch(&self, key: &Key, batch: u32) -> Result<Option<Vec<Chunk>>, Error> {
        let size = u32::try_from(BATCH_CHUNKS).expect("a batch is small");
        let from = batch.saturating_mul(size);
        self.chunks_between(key, from, from.saturating_add(size))
    }

    /// One chunk; nothing when the generation is stale or it has no such chunk.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn chunk(&self, key: &Key, chunk: &ChunkId) -> Result<Option<Chunk>, Error> {
        self.read(|connection| {
            if status_of(connection, key)?.is_none() {
                return Ok(None);
            }
            let sql = "SELECT id, ordinal, heading, text FROM chunks WHERE id = ?1 AND document = ?2";
            Ok(connection.prepare_cached(sql)?.query_row((chunk, &key.document), chunk_row).optional()?)
        })
    }

    fn chunks_between(&self, key: &Key, from: u32, to: u32) -> Result<Option<Vec<Chunk>>, Error> {
        self.read(|connection| {
            if status_of(connection, key)?.is_none() {
                return Ok(None);
            }
            let sql = "SELECT id, ordinal, heading, text FROM chunks
                       WHERE document = ?1 AND ordinal >= ?2 AND ordinal < ?3 ORDER BY ordinal";
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map((&key.document, from, to), chunk_row)?;
            Ok(Some(rows.collect::<Result<_, _>>()?))
        })
    }
}

fn chunk_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Chunk> {
    Ok(Chunk { id: row.get(0)?, ordinal: row.get(1)?, heading: row.get(2)?, text: row.get(3)? })
}

/// Clears the way for new content, unless it is there already or nobody waits for it.
fn replace(connection: &Connection, key: &Key) -> Result<Applied, Error> {
    match status_of(connection, key)? {
        None => return Ok(Applied::Stale),
        Some(Status::Pending | Status::Processing) => {}
        Some(_) => return Ok(Applied::Already),
    }
    clear(connection, &key.document)?;
    let sql = "UPDATE documents SET content = generation WHERE id = ?1";
    connection.prepare_cached(sql)?.execute([&key.document])?;
    pages::mark(connection, &key.document)?;
    Ok(Applied::Done)
}

/// Deletes everything that came of a document's content.
pub(super) fn clear(connection: &Connection, document: &DocumentId) -> Result<(), Error> {
    let words = "DELETE FROM chunk_words WHERE rowid IN (SELECT place FROM chunks WHERE document = ?1)";
    connection.prepare_cached(words)?.execute([document])?;
    for table in ["chunks", "targets", "pictures", "summaries", "questions", "nodes", "edges"] {
        connection
            .prepare_cached(&format!("DELETE FROM {table} WHERE document = ?1"))?
            .execute([document])?;
    }
    forget_parts(connection, document)
}

pub(super) fn forget_parts(connection: &Connection, document: &DocumentId) -> Result<(), Error> {
    connection.prepare_cached("DELETE FROM parts WHERE document = ?1")?.execute([document])?;
    Ok(())
}

fn insert_chunks(connection: &Connection, document: &DocumentId, chunks: &[Chunk]) -> Result<(), Error> {
    let sql = "INSERT INTO chunks (id, document, ordinal, heading, text) VALUES (?1, ?2, ?3, ?4, ?5)";
    let mut insert = connection.prepare_cached(sql)?;
    let mut words =
        connection.prepare_cached("INSERT INTO chunk_words (rowid, heading, text) VALUES (?1, ?2, ?3)")?;
    for chunk in chunks {
        let place = insert.insert((&chunk.id, document, chunk.ordinal, &chunk.heading, &chunk.text))?;
        words.execute((place, spread(&chunk.heading), spread(&chunk.text)))?;
    }
    Ok(())
}

fn insert_targets(connection: &Connection, id: &DocumentId, document: &Document) -> Result<(), Error> {
    let mut insert = connection.prepare_cached("INSERT OR IGNORE INTO targets VALUES (?1, ?2)")?;
    for reference in document.links.iter().chain(&document.images) {
        insert.execute((id, &reference.target))?;
    }
    Ok(())
}
