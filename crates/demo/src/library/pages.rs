//! What the wiki asks: which pages are out of date, what goes on them, and which pages lie in the folder.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension};

use super::{Library, json};
use crate::Error;
use crate::id::DocumentId;
use crate::stage::graph::NodeKind;
use crate::stage::question::Question;
use crate::stage::summary::Summary;
use crate::stage::wiki::{Details, Entry, Mention, PageName, QUESTIONS_MAX, resolve};

/// Terms of one document that the wiki looks at.
const MENTIONS_MAX: u32 = 40;
/// A document whose page may be out of date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dirty {
    /// The number of the mark; clearing it leaves later marks.
    pub number: i64,
    /// The document; it may be gone by now.
    pub document: DocumentId,
}

impl Library {
    /// The oldest marks.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn dirty(&self, limit: u32) -> Result<Vec<Dirty>, Error> {
        self.read(|connection| {
            let sql = "SELECT number, document FROM dirty ORDER BY number LIMIT ?1";
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement
                .query_map([limit], |row| Ok(Dirty { number: row.get(0)?, document: row.get(1)? }))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// The number of the latest mark that was ever set, 0 when there was none: while it stays the same, no page has
    /// gone out of date.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn last_mark(&self) -> Result<i64, Error> {
        self.read(|connection| {
            let sql = "SELECT seq FROM sqlite_sequence WHERE name = 'dirty'";
            let last = connection.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()?;
            Ok(last.unwrap_or(0))
        })
    }

    /// Takes marks away once their pages are drawn. A document that was marked again meanwhile stays marked.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn clear_dirty(&self, drawn: &[Dirty]) -> Result<(), Error> {
        self.write(|connection| {
            let mut delete = connection.prepare_cached("DELETE FROM dirty WHERE number = ?1")?;
            for mark in drawn {
                delete.execute([mark.number])?;
            }
            Ok(())
        })
    }

    /// Every document that has content, for the atlas.
    ///
    /// # Errors
    /// [`Error::Library`], [`Error::Corrupt`].
    pub fn entries(&self) -> Result<Vec<Entry>, Error> {
        self.read(|connection| {
            let sql = "SELECT id, source, path, kind, coalesce(title, path) FROM documents WHERE content IS NOT NULL";
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map([], |row| {
                Ok(Entry {
                    id: row.get(0)?,
                    source: row.get(1)?,
                    path: row.get(2)?,
                    kind: row.get(3)?,
                    title: row.get(4)?,
                    mentions: Vec::new(),
                    targets: Vec::new(),
                })
            })?;
            let mut entries: Vec<Entry> = rows.collect::<Result<_, _>>()?;
            for entry in &mut entries {
                entry.mentions = mentions(connection, &entry.id)?;
                entry.targets = targets(connection, entry)?;
            }
            Ok(entries)
        })
    }

    /// What goes on a document's page.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn details(&self, document: &DocumentId) -> Result<Details, Error> {
        self.read(|connection| {
            let notes = "SELECT notes FROM documents WHERE id = ?1";
            let notes =
                connection.prepare_cached(notes)?.query_row([document], |row| json(row, 0)).optional()?;
            let summary = "SELECT text, keywords FROM summaries WHERE document = ?1";
            let summary = connection
                .prepare_cached(summary)?
                .query_row([document], |row| Ok(Summary { text: row.get(0)?, keywords: json(row, 1)? }))
                .optional()?;
            let picture = "SELECT width, height, average, colours FROM pictures WHERE document = ?1";
            let picture = connection
                .prepare_cached(picture)?
                .query_row([document], |row| Ok((row.get(0)?, row.get(1)?, json(row, 2)?, json(row, 3)?)))
                .optional()?;
            Ok(Details {
                summary,
                questions: questions(connection, document)?,
                questions_total: count(connection, "questions", document)?,
                chunks: count(connection, "chunks", document)?,
                picture,
                notes: notes.unwrap_or_default(),
            })
        })
    }

    /// The thumbnail of a picture, a PNG.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn thumbnail(&self, document: &DocumentId) -> Result<Option<Vec<u8>>, Error> {
        self.read(|connection| {
            let sql = "SELECT thumbnail FROM pictures WHERE document = ?1";
            Ok(connection.prepare_cached(sql)?.query_row([document], |row| row.get(0)).optional()?)
        })
    }

    /// Writes down that pages are about to be put. Before they are, so that no page lies there that nobody knows of.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn record_pages<'a>(&self, names: impl IntoIterator<Item = &'a PageName>) -> Result<(), Error> {
        self.write(|connection| {
            let mut insert = connection.prepare_cached("INSERT OR IGNORE INTO pages VALUES (?1)")?;
            for name in names {
                insert.execute([name.as_str()])?;
            }
            Ok(())
        })
    }

    /// Pages that were put and that `wanted` does not hold.
    ///
    /// # Errors
    /// [`Error::Library`], [`Error::Corrupt`].
    pub fn stale_pages(&self, wanted: &BTreeSet<PageName>) -> Result<Vec<PageName>, Error> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached("SELECT name FROM pages ORDER BY name")?;
            let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
            let mut stale = Vec::new();
            for row in rows {
                let value = row?;
                let name = PageName::parse(&value).ok_or(Error::Corrupt { what: "page name", value })?;
                if !wanted.contains(&name) {
                    stale.push(name);
                }
            }
            Ok(stale)
        })
    }

    /// Forgets a page. After it was removed from the folder.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn forget_page(&self, name: &PageName) -> Result<(), Error> {
        self.write(|connection| {
            connection.prepare_cached("DELETE FROM pages WHERE name = ?1")?.execute([name.as_str()])?;
            Ok(())
        })
    }
}

/// Marks a document's page as out of date.
pub(super) fn mark(connection: &Connection, document: &DocumentId) -> Result<(), Error> {
    let sql = "INSERT OR REPLACE INTO dirty (document) VALUES (?1)";
    connection.prepare_cached(sql)?.execute([document])?;
    Ok(())
}

/// The weightiest terms of a document over all its chunks; a name or identifier counts twice.
fn mentions(connection: &Connection, document: &DocumentId) -> Result<Vec<Mention>, Error> {
    // Chunks may differ in how they write a term; the way that comes most counts.
    let sql = "SELECT term, label, kind, times FROM (
                   SELECT term, label, kind, sum(sum(count)) OVER (PARTITION BY term) AS times,
                          row_number() OVER (PARTITION BY term ORDER BY sum(count) DESC, label, kind) AS place
                   FROM nodes WHERE document = ?1 GROUP BY term, label, kind)
               WHERE place = 1 ORDER BY times * (CASE kind WHEN 'term' THEN 1 ELSE 2 END) DESC, term LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query((document, MENTIONS_MAX))?;
    let mut mentions = Vec::new();
    while let Some(row) = rows.next()? {
        let value: String = row.get(2)?;
        let kind = match value.as_str() {
            "name" => NodeKind::Name,
            "code" => NodeKind::Code,
            "term" => NodeKind::Term,
            _ => return Err(Error::Corrupt { what: "kind of node", value }),
        };
        mentions.push(Mention { term: row.get(0)?, label: row.get(1)?, kind, count: row.get(3)? });
    }
    Ok(mentions)
}

fn targets(connection: &Connection, entry: &Entry) -> Result<Vec<String>, Error> {
    let sql = "SELECT target FROM targets WHERE document = ?1 ORDER BY target";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([&entry.id], |row| row.get::<_, String>(0))?;
    let targets: Vec<String> = rows.collect::<Result<_, _>>()?;
    Ok(targets.iter().filter_map(|target| resolve(&entry.path, target)).collect())
}

fn count(connection: &Connection, table: &str, document: &DocumentId) -> Result<u64, Error> {
    let sql = format!("SELECT count(*) FROM {table} WHERE document = ?1");
    let count: i64 = connection.prepare_cached(&sql)?.query_row([document], |row| row.get(0))?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// The questions that a page shows.
fn questions(connection: &Connection, document: &DocumentId) -> Result<Vec<Question>, Error> {
    let limit = i64::try_from(QUESTIONS_MAX).unwrap_or(i64::MAX);
    let sql =
        "SELECT chunk, text, answer FROM questions WHERE document = ?1 ORDER BY batch, ordinal LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map((document, limit), |row| {
        Ok(Question { chunk: row.get(0)?, text: row.get(1)?, answer: row.get(2)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
