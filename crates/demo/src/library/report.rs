//! What the closing report tells: counts, and why files are missing.

use rusqlite::{Connection, params_from_iter};
use serde::{Deserialize, Serialize};

use super::{Library, Trouble};
use crate::Error;
use crate::id::SourceId;
use crate::stage::wiki::{Failure, LeftOut};

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
    /// Pages of the wiki, without thumbnails; always of the whole wiki.
    pub wiki_pages: u64,
    /// Files that could not be read.
    pub failed: u64,
    /// Files that the walk left out.
    pub skipped: u64,
    /// Files whose work has not ended.
    pub unfinished: u64,
}

/// A file that could not be read, or that lacks a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// The folder.
    pub source: SourceId,
    /// Below the folder.
    pub path: String,
    /// Why.
    pub trouble: Trouble,
}

impl Library {
    /// The counts of this moment, over all folders.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn counts(&self) -> Result<Counts, Error> {
        self.read(|connection| counts(connection, &Of::all()))
    }

    /// The counts of this moment, over these folders.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn counts_of(&self, sources: &[SourceId]) -> Result<Counts, Error> {
        self.read(|connection| counts(connection, &Of::these(sources)))
    }

    /// Files of these folders that could not be read and parts that failed, in the order of their paths.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn failed(&self, sources: &[SourceId]) -> Result<Vec<Failed>, Error> {
        self.read(|connection| {
            let Of { filter, .. } = Of::these(sources);
            let sql = format!(
                "SELECT source, path, task_type, class, reason FROM documents WHERE status = 'failed' AND {filter}
                 UNION ALL
                 SELECT d.source, d.path, p.task_type, p.class, p.reason FROM parts p JOIN documents d ON d.id = p.document
                 WHERE p.state = 'failed' AND {filter} ORDER BY 1, 2, 3, 5"
            );
            let mut statement = connection.prepare(&sql)?;
            let rows = statement.query_map(params_from_iter(sources), |row| {
                let trouble =
                    Trouble { task_type: row.get(2)?, class: row.get(3)?, reason: row.get(4)? };
                Ok(Failed { source: row.get(0)?, path: row.get(1)?, trouble })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// What the walks of these folders left out, by reason, the most frequent first.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn left_out_of(&self, sources: &[SourceId]) -> Result<Vec<LeftOut>, Error> {
        self.read(|connection| left_out(connection, &Of::these(sources)))
    }

    /// The same over all folders.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn left_out(&self) -> Result<Vec<LeftOut>, Error> {
        self.read(|connection| left_out(connection, &Of::all()))
    }

    /// Files that could not be read, with their reasons, in the order of their paths.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn failures(&self) -> Result<Vec<Failure>, Error> {
        self.read(|connection| {
            let sql = "SELECT path, reason FROM documents WHERE status = 'failed' ORDER BY path, source";
            let mut statement = connection.prepare_cached(sql)?;
            let rows =
                statement.query_map([], |row| Ok(Failure { path: row.get(0)?, reason: row.get(1)? }))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}

/// A condition on a column `source`, and the values it asks for.
struct Of<'a> {
    filter: String,
    sources: &'a [SourceId],
}

impl<'a> Of<'a> {
    fn all() -> Self {
        Self { filter: "true".to_owned(), sources: &[] }
    }

    fn these(sources: &'a [SourceId]) -> Self {
        // Numbered, so that a statement may ask twice.
        let places: Vec<String> = (1..=sources.len()).map(|at| format!("?{at}")).collect();
        Self { filter: format!("source IN ({})", places.join(", ")), sources }
    }

    fn count(&self, connection: &Connection, what: &str) -> Result<u64, Error> {
        let count = connection
            .prepare(&format!("SELECT count(*) FROM {what}"))?
            .query_row(params_from_iter(self.sources), |row| row.get(0))?;
        Ok(unsigned(count))
    }
}

fn counts(connection: &Connection, of: &Of<'_>) -> Result<Counts, Error> {
    let filter = &of.filter;
    let documents = |what: &str| of.count(connection, &format!("documents WHERE {what} AND {filter}"));
    let rows = |table: &str, what: &str| {
        let ours = format!("(SELECT id FROM documents WHERE {filter})");
        of.count(connection, &format!("(SELECT {what} FROM {table} WHERE document IN {ours})"))
    };
    Ok(Counts {
        documents: documents("content IS NOT NULL AND kind NOT IN ('png', 'jpeg', 'gif', 'webp')")?,
        chunks: rows("chunks", "1")?,
        images: rows("pictures", "1")?,
        summaries: rows("summaries", "1")?,
        questions: rows("questions", "1")?,
        terms: rows("nodes", "DISTINCT term")?,
        wiki_pages: unsigned(connection.query_row(
            "SELECT count(*) FROM pages WHERE name LIKE '%.md'",
            [],
            |row| row.get(0),
        )?),
        failed: documents("status = 'failed'")?,
        skipped: of.count(connection, &format!("skips WHERE {filter}"))?,
        unfinished: documents("status NOT IN ('completed', 'failed')")?,
    })
}

fn left_out(connection: &Connection, of: &Of<'_>) -> Result<Vec<LeftOut>, Error> {
    let filter = &of.filter;
    let sql = format!(
        "SELECT reason, count(*), min(path) FROM skips WHERE {filter} GROUP BY reason ORDER BY 2 DESC, 1"
    );
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map(params_from_iter(of.sources), |row| {
        Ok(LeftOut { reason: row.get(0)?, files: unsigned(row.get(1)?), example: row.get(2)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// A count is never negative.
fn unsigned(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}
