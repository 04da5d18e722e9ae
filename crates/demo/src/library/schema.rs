//! The tables, and how a connection to them is set up.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::Error;

/// Marks the file as ours: `PWDL`.
const APPLICATION_ID: i32 = 0x5057_444c;
/// Counts up when the tables change.
const VERSION: i32 = 1;
/// How long a write waits for another process to finish its own.
const BUSY: Duration = Duration::from_secs(30);

const TABLES: &str = "
-- The last generation that was given out; one row. A library that is made anew begins somewhere else than the one
-- that was deleted, whose tasks may still wait in the queues.
CREATE TABLE generations (last INTEGER NOT NULL) STRICT;
INSERT INTO generations VALUES (abs(random() % 1000000) * 1000000);

CREATE TABLE documents (
    id TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    path TEXT NOT NULL,
    kind TEXT NOT NULL,
    hash TEXT NOT NULL,
    generation INTEGER NOT NULL,
    status TEXT NOT NULL,
    -- Of a failed document: which task failed, the class of its error, and what it said.
    task_type TEXT,
    class TEXT,
    reason TEXT,
    title TEXT,
    notes TEXT NOT NULL DEFAULT '[]',
    -- The generation whose content is stored; null while there is none. Lags behind `generation` while new content
    -- is being read, so that a search finds the old until the new is there.
    content INTEGER,
    UNIQUE (source, path)
) STRICT;

-- After each step somebody asks whether it was the last one of its folder.
CREATE INDEX open_documents ON documents (source) WHERE status NOT IN ('completed', 'failed');

CREATE TABLE chunks (
    place INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    document TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    heading TEXT NOT NULL,
    text TEXT NOT NULL,
    UNIQUE (document, ordinal)
) STRICT;

-- Its rowid is the chunk's place.
CREATE VIRTUAL TABLE chunk_words USING fts5 (heading, text, tokenize = 'porter unicode61 remove_diacritics 2');

CREATE TABLE targets (
    document TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    target TEXT NOT NULL,
    PRIMARY KEY (document, target)
) STRICT, WITHOUT ROWID;

CREATE TABLE pictures (
    document TEXT PRIMARY KEY REFERENCES documents (id) ON DELETE CASCADE,
    width INTEGER NOT NULL,
    height INTEGER NOT NULL,
    average TEXT NOT NULL,
    colours TEXT NOT NULL,
    thumbnail BLOB NOT NULL
) STRICT;

-- What must end before a document is completed.
CREATE TABLE parts (
    document TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    part TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('open', 'done', 'failed')),
    task_type TEXT,
    class TEXT,
    reason TEXT,
    PRIMARY KEY (document, part)
) STRICT, WITHOUT ROWID;

-- After each part somebody asks whether it was the last one of its document.
CREATE INDEX open_parts ON parts (document) WHERE state = 'open';

CREATE TABLE summaries (
    document TEXT PRIMARY KEY REFERENCES documents (id) ON DELETE CASCADE,
    text TEXT NOT NULL,
    keywords TEXT NOT NULL
) STRICT;

CREATE TABLE questions (
    document TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    batch INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    chunk TEXT NOT NULL,
    text TEXT NOT NULL,
    answer TEXT NOT NULL,
    PRIMARY KEY (document, batch, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE nodes (
    document TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    chunk TEXT NOT NULL,
    term TEXT NOT NULL,
    label TEXT NOT NULL,
    kind TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (document, chunk, term)
) STRICT, WITHOUT ROWID;

CREATE TABLE edges (
    document TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    chunk TEXT NOT NULL,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    weight INTEGER NOT NULL,
    PRIMARY KEY (document, chunk, source, target)
) STRICT, WITHOUT ROWID;

CREATE TABLE skips (
    source TEXT NOT NULL,
    path TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (source, path)
) STRICT, WITHOUT ROWID;

-- Documents whose page may be out of date. A new mark takes a new number, which is never used again, so clearing an
-- old number cannot clear a newer mark.
CREATE TABLE dirty (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    document TEXT NOT NULL UNIQUE
) STRICT;

-- Pages that may lie in the wiki's folder; written down before the page is.
CREATE TABLE pages (
    name TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
";

/// A connection with our settings.
pub(super) fn connect(path: &Path) -> Result<Connection, Error> {
    set_up(Connection::open(path)?)
}

/// A connection that changes nothing, and makes no file where there is none any more.
pub(super) fn connect_to_read(path: &Path) -> Result<Connection, Error> {
    let connection =
        set_up(Connection::open_with_flags(path, OpenFlags::default() - OpenFlags::SQLITE_OPEN_CREATE)?)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn set_up(connection: Connection) -> Result<Connection, Error> {
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // With a write-ahead log this survives every crash of the process; a power cut may take the last moments, and
    // then takes them whole, so the next sync finds the documents unfinished and goes on.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Makes the tables in a new file; refuses a file that is not ours or too new.
pub(super) fn prepare(connection: &mut Connection, path: &Path) -> Result<(), Error> {
    refuse_read_only(connection, path)?;
    // One transaction from the first look on: another process may be making the tables right now.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    refuse_foreign(&transaction, path)?;
    if version(&transaction)? == 0 {
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    transaction.commit()?;
    switch_to_log(connection)
}

/// SQLite opens a file that it may not write all the same, and says so only at the first write, in the midst of a run.
fn refuse_read_only(connection: &Connection, path: &Path) -> Result<(), Error> {
    if connection.is_readonly("main")? {
        let (path, detail) = (path.display().to_string(), "it is read-only".to_owned());
        return Err(Error::UnwritableLibrary { path, detail });
    }
    Ok(())
}

/// Turns the write-ahead log on. This one lock is refused without waiting when others open the file too; then a write
/// lock is taken and given back, which does wait for them, before the next try.
fn switch_to_log(connection: &mut Connection) -> Result<(), Error> {
    const TRIES_MAX: usize = 10_000;
    let mut tries = 0;
    loop {
        tries += 1;
        match connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())) {
            Err(e) if e.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && tries < TRIES_MAX => {
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?.commit()?;
                std::thread::yield_now();
            }
            done => return Ok(done?),
        }
    }
}

fn refuse_foreign(connection: &Connection, path: &Path) -> Result<(), Error> {
    let found = connection.pragma_query_value(None, "application_id", |row| row.get::<_, i32>(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let path = path.display().to_string();
    if found != APPLICATION_ID && (found != 0 || tables > 0) {
        return Err(Error::ForeignLibrary { path, found });
    }
    match version(connection)? {
        found if found > VERSION => Err(Error::NewerLibrary { path, found, known: VERSION }),
        _ => Ok(()),
    }
}

fn version(connection: &Connection) -> Result<i32, Error> {
    Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_cannot_be_written_is_refused_at_opening() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("library.sqlite");
        prepare(&mut connect(&path).expect("opens"), &path).expect("makes the tables");
        // What SQLite gives of a file without the permission to write; root has it always.
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let mut connection = Connection::open_with_flags(&path, flags).expect("opens");
        let refusal = prepare(&mut connection, &path).expect_err("refused").to_string();
        let start = format!("cannot write the library {}: it is read-only; make", path.display());
        assert!(refusal.starts_with(&start), "{refusal}");
    }
}
