//! What the closing report tells: counts, and why files are missing.

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::Library;
use crate::Error;
use crate::stage::wiki::Failure;

/// How much the library holds. The same files give the same counts, however often the run was interrupted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Files with text that were read.
    pub documents: u64,
    /// Pieces they were cut into.
    pub chunks: u64,
    /// Pictures that were decoded.
    pub images: u64,
    /// Documents with a summary.
    pub summaries: u64,
    /// Questions that chunks answer.
    pub questions: u64,
    /// Terms of all graphs, each once.
    pub terms: u64,
    /// Pages of the wiki, without thumbnails.
    pub wiki_pages: u64,
    /// Files that could not be read.
    pub failed: u64,
    /// Files that the walk left out.
    pub skipped: u64,
    /// Files whose work has not ended.
    pub unfinished: u64,
}

impl Library {
    /// The counts of this moment.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn counts(&self) -> Result<Counts, Error> {
        self.read(|connection| {
            let pictures = "kind IN ('png', 'jpeg', 'gif', 'webp')";
            Ok(Counts {
                documents: count(
                    connection,
                    &format!("documents WHERE content IS NOT NULL AND NOT {pictures}"),
                )?,
                chunks: count(connection, "chunks")?,
                images: count(connection, "pictures")?,
                summaries: count(connection, "summaries")?,
                questions: count(connection, "questions")?,
                terms: count(connection, "(SELECT DISTINCT term FROM nodes)")?,
                wiki_pages: count(connection, "pages WHERE name LIKE '%.md'")?,
                failed: count(connection, "documents WHERE status = 'failed'")?,
                skipped: count(connection, "skips")?,
                unfinished: count(connection, "documents WHERE status NOT IN ('completed', 'failed')")?,
            })
        })
    }

    /// Files that could not be read and files that were left out, with their reasons, in the order of their paths.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn failures(&self) -> Result<Vec<Failure>, Error> {
        self.read(|connection| {
            let sql =
                "SELECT path, coalesce(reason, 'no reason was given') FROM documents WHERE status = 'failed'
                       UNION ALL SELECT path, reason FROM skips ORDER BY 1, 2";
            let mut statement = connection.prepare_cached(sql)?;
            let rows =
                statement.query_map([], |row| Ok(Failure { path: row.get(0)?, reason: row.get(1)? }))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}

fn count(connection: &Connection, of: &str) -> Result<u64, Error> {
    let count: i64 =
        connection.prepare_cached(&format!("SELECT count(*) FROM {of}"))?.query_row([], |row| row.get(0))?;
    Ok(u64::try_from(count).unwrap_or(0))
}
