//! What the enrichment writes: summary, questions and graph, each a part that the document waits for.
//!
//! Invariant: a part and its rows are written in one step, and the step that ends the last part completes the
//! document; rows, not a counter, say what is open, so ending a part twice is ending it once.

use std::fmt;

use rusqlite::{Connection, OptionalExtension};

use super::{Applied, Library, Status, Trouble, pages, set_status, status_of, to_json};
use crate::Error;
use crate::id::{ChunkId, DocumentId, Key};
use crate::stage::graph::Graph;
use crate::stage::question::Question;
use crate::stage::summary::Summary;

/// One task of the enrichment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The document's summary.
    Summary,
    /// The questions of one batch of chunks, from 0.
    Questions(u32),
    /// The graph of one chunk.
    Graph(ChunkId),
}

impl Part {
    fn parse(text: &str) -> Option<Self> {
        match text.split_once(':') {
            None => (text == "summary").then_some(Self::Summary),
            Some(("questions", batch)) => batch.parse().ok().map(Self::Questions),
            Some(("graph", chunk)) => Some(Self::Graph(ChunkId::from(chunk.to_owned()))),
            Some(_) => None,
        }
    }
}

/// As in rows: `summary`, `questions:3`, `graph:<chunk>`.
impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Summary => f.write_str("summary"),
            Self::Questions(batch) => write!(f, "questions:{batch}"),
            Self::Graph(chunk) => write!(f, "graph:{chunk}"),
        }
    }
}

impl Library {
    /// Says which parts a document waits for; with none it is completed. Only once: a second call changes nothing, and
    /// [`open_parts`](Self::open_parts) tells what is still to do.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn expect_parts(&self, key: &Key, parts: &[Part]) -> Result<Applied, Error> {
        self.write(|connection| {
            match status_of(connection, key)? {
                None | Some(Status::Pending) => return Ok(Applied::Stale),
                Some(Status::Processing) => {}
                Some(_) => return Ok(Applied::Already),
            }
            let sql = "INSERT OR IGNORE INTO parts (document, part, state) VALUES (?1, ?2, 'open')";
            let mut insert = connection.prepare_cached(sql)?;
            for part in parts {
                insert.execute((&key.document, part.to_string()))?;
            }
            set_status(connection, &key.document, Status::Finalizing)?;
            complete_if_last(connection, &key.document)?;
            Ok(Applied::Done)
        })
    }

    /// The parts that have not ended, in order; none when the generation is stale.
    ///
    /// # Errors
    /// [`Error::Library`], [`Error::Corrupt`].
    pub fn open_parts(&self, key: &Key) -> Result<Vec<Part>, Error> {
        self.read(|connection| {
            if status_of(connection, key)?.is_none() {
                return Ok(Vec::new());
            }
            let sql = "SELECT part FROM parts WHERE document = ?1 AND state = 'open'";
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map([&key.document], |row| row.get::<_, String>(0))?;
            let mut parts = Vec::new();
            for row in rows {
                let value = row?;
                parts.push(Part::parse(&value).ok_or(Error::Corrupt { what: "part", value })?);
            }
            parts.sort();
            Ok(parts)
        })
    }

    /// Stores the summary and ends its part.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn store_summary(&self, key: &Key, summary: &Summary) -> Result<Applied, Error> {
        self.end_part(key, &Part::Summary, |connection| {
            let sql = "INSERT OR REPLACE INTO summaries VALUES (?1, ?2, ?3)";
            let row = (&key.document, &summary.text, to_json(&summary.keywords));
            connection.prepare_cached(sql)?.execute(row)?;
            Ok(())
        })
    }

    /// Stores the questions of one batch and ends its part.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn store_questions(&self, key: &Key, batch: u32, questions: &[Question]) -> Result<Applied, Error> {
        self.end_part(key, &Part::Questions(batch), |connection| {
            let sql = "INSERT OR REPLACE INTO questions VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            let mut insert = connection.prepare_cached(sql)?;
            for (ordinal, question) in (0_u32..).zip(questions) {
                let row = (&key.document, batch, ordinal, &question.chunk, &question.text, &question.answer);
                insert.execute(row)?;
            }
            Ok(())
        })
    }

    /// Stores the graph of one chunk and ends its part.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn store_graph(&self, key: &Key, chunk: &ChunkId, graph: &Graph) -> Result<Applied, Error> {
        self.end_part(key, &Part::Graph(chunk.clone()), |connection| {
            let mut node =
                connection.prepare_cached("INSERT OR REPLACE INTO nodes VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
            for n in &graph.nodes {
                node.execute((&key.document, chunk, &n.term, &n.label, n.kind.as_str(), n.count))?;
            }
            let mut edge =
                connection.prepare_cached("INSERT OR REPLACE INTO edges VALUES (?1, ?2, ?3, ?4, ?5)")?;
            for e in &graph.edges {
                edge.execute((&key.document, chunk, &e.from, &e.to, e.weight))?;
            }
            Ok(())
        })
    }

    /// Ends a part without a result. The document is completed all the same when it was the last: it is searchable,
    /// only poorer.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn fail_part(&self, key: &Key, part: &Part, trouble: &Trouble) -> Result<Applied, Error> {
        self.write(|connection| {
            let applied = settle(connection, key, part, Some(trouble))?;
            if applied == Applied::Done {
                complete_if_last(connection, &key.document)?;
            }
            Ok(applied)
        })
    }

    fn end_part(
        &self,
        key: &Key,
        part: &Part,
        store: impl FnOnce(&Connection) -> Result<(), Error>,
    ) -> Result<Applied, Error> {
        self.write(|connection| {
            let applied = settle(connection, key, part, None)?;
            if applied == Applied::Done {
                store(connection)?;
                pages::mark(connection, &key.document)?;
                complete_if_last(connection, &key.document)?;
            }
            Ok(applied)
        })
    }
}

/// Ends a part, well or with a trouble. One that failed may still end well: somebody replays its dead letter.
fn settle(
    connection: &Connection,
    key: &Key,
    part: &Part,
    trouble: Option<&Trouble>,
) -> Result<Applied, Error> {
    if status_of(connection, key)?.is_none() {
        return Ok(Applied::Stale);
    }
    let part = part.to_string();
    let sql = "SELECT state FROM parts WHERE document = ?1 AND part = ?2";
    let found: Option<String> =
        connection.prepare_cached(sql)?.query_row((&key.document, &part), |row| row.get(0)).optional()?;
    match (found.as_deref(), trouble) {
        (None, _) => Ok(Applied::Stale),
        (Some("open"), _) | (Some("failed"), None) => {
            let sql = "UPDATE parts SET state = ?3, task_type = ?4, class = ?5, reason = ?6
                       WHERE document = ?1 AND part = ?2";
            let state = if trouble.is_some() { "failed" } else { "done" };
            let task_type = trouble.map(|trouble| &trouble.task_type);
            let class = trouble.map(|trouble| &trouble.class);
            let reason = trouble.map(|trouble| &trouble.reason);
            let row = (&key.document, &part, state, task_type, class, reason);
            connection.prepare_cached(sql)?.execute(row)?;
            Ok(Applied::Done)
        }
        (Some(_), _) => Ok(Applied::Already),
    }
}

/// Completes a finalizing document that waits for nothing more.
fn complete_if_last(connection: &Connection, document: &DocumentId) -> Result<(), Error> {
    let sql = "UPDATE documents SET status = ?2 WHERE id = ?1 AND status = ?3
               AND NOT EXISTS (SELECT 1 FROM parts WHERE document = ?1 AND state = 'open')";
    let row = (document, Status::Completed, Status::Finalizing);
    if connection.prepare_cached(sql)?.execute(row)? > 0 {
        pages::mark(connection, document)?;
    }
    Ok(())
}
