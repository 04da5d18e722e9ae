//! Opening the file: what it is, what it may become, and how its connections are set.
//!
//! Invariant: a file that is refused is not changed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::ffi::SQLITE_IOERR_SHORT_READ;
use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags};

use crate::busy::{Patience, Wait};
use crate::error::is_busy;
use crate::migrate;
use crate::{Error, Options};

/// SQLite's page size, which is the default since 2016 and set for new files.
const PAGE_BYTES: u64 = 4_096;

/// The memory of the writer for pages, in KiB. What is hot are the edges of the indexes, whatever the size of the table; and
/// SQLite walks the cache's hash table at the end of many a transaction, so a larger cache costs time.
const WRITER_CACHE_KIB: i64 = 4 * 1_024;

/// After a checkpoint the write-ahead log is cut to this size.
const LOG_BYTES_KEPT: i64 = 64 * 1_024 * 1_024;

/// Opens the writing connection, and makes or upgrades the schema.
pub(crate) fn writer(options: &Options, patience: &Patience) -> Result<Connection, Error> {
    let path = &options.path;
    check_path(options)?;
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(path, flags).map_err(|e| explain(path, &e, patience))?;
    patience.install(&mut conn).map_err(|e| explain(path, &e, patience))?;
    if conn.is_readonly(MAIN_DB).map_err(|e| explain(path, &e, patience))? {
        return Err(Error::ReadOnly { path: path.clone() });
    }
    let found = patiently(patience, || snapshot(&conn)).map_err(|e| explain(path, &e, patience))?;
    migrate::check(found, path)?;
    let mode = patiently(patience, || settings(&conn, options)).map_err(|e| explain(path, &e, patience))?;
    if mode != "wal" {
        let why = format!(
            "its file system allows no write-ahead log (journal mode {mode}); put it on a local disk"
        );
        return Err(Error::CannotOpen { path: path.clone(), why });
    }
    // Only then: it takes the write lock, and another process may hold that for long.
    if found.lacks_steps() {
        migrate::up(&mut conn, path).map_err(|e| explain(path, &e, patience))??;
    }
    limit(&conn, options).map_err(|e| explain(path, &e, patience))?;
    Ok(conn)
}

/// What the file says of itself, at one moment: another process may be making its schema just now.
fn snapshot(conn: &Connection) -> rusqlite::Result<migrate::Found> {
    let tx = conn.unchecked_transaction()?;
    let found = migrate::look(&tx)?;
    tx.commit()?;
    Ok(found)
}

/// Plans a statement once, for all values it will be bound to. Without this SQLite looks at the values of a `LIMIT ?` and
/// its like, and prepares the statement anew whenever they are bound again.
fn plan_once(conn: &Connection) -> rusqlite::Result<()> {
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

/// Opens a connection that only moves the log into the file.
pub(crate) fn second(options: &Options, patience: &Patience) -> Result<Connection, Error> {
    let path = &options.path;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).map_err(|e| explain(path, &e, patience))?;
    let set = || {
        conn.pragma_update(None, "synchronous", options.synchronous.as_str())?;
        conn.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES_KEPT, |_| Ok(()))
    };
    set().map_err(|e| explain(path, &e, patience))?;
    Ok(conn)
}

/// Opens a connection that only reads.
pub(crate) fn reader(options: &Options, patience: &Patience) -> Result<Connection, Error> {
    let path = &options.path;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(path, flags).map_err(|e| explain(path, &e, patience))?;
    patience.install(&mut conn).map_err(|e| explain(path, &e, patience))?;
    plan_once(&conn).map_err(|e| explain(path, &e, patience))?;
    conn.set_prepared_statement_cache_capacity(64);
    Ok(conn)
}

fn check_path(options: &Options) -> Result<(), Error> {
    let path = &options.path;
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => return Err(Error::IsDirectory { path: path.clone() }),
        Ok(meta) if !meta.is_file() => {
            return Err(Error::CannotOpen { path: path.clone(), why: "it is no regular file".to_owned() });
        }
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(Error::CannotOpen { path: path.clone(), why: error.to_string() }),
    }
    let parent = directory_of(path);
    if parent.is_dir() {
        return Ok(());
    }
    if !options.create_parents {
        let why = format!("there is no directory {}; create it", parent.display());
        return Err(Error::CannotOpen { path: path.clone(), why });
    }
    fs::create_dir_all(&parent).map_err(|error| Error::CannotOpen {
        path: path.clone(),
        why: format!("cannot create the directory {}: {error}", parent.display()),
    })
}

fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Sets what holds for the connection; gives the journal mode that the file allowed.
fn settings(conn: &Connection, options: &Options) -> rusqlite::Result<String> {
    let mode = conn.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    conn.pragma_update(None, "synchronous", options.synchronous.as_str())?;
    conn.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    conn.pragma_update(None, "temp_store", "memory")?;
    // The writer makes its checkpoints itself, after it has answered its callers.
    conn.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
    conn.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES_KEPT, |_| Ok(()))?;
    plan_once(conn)?;
    conn.set_prepared_statement_cache_capacity(128);
    Ok(mode)
}

fn limit(conn: &Connection, options: &Options) -> rusqlite::Result<()> {
    if let Some(bytes) = options.file_bytes_max {
        let pages = i64::try_from((bytes / PAGE_BYTES).max(1)).unwrap_or(i64::MAX);
        conn.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    }
    Ok(())
}

/// Some locks are refused without asking the busy handler (switching to the write-ahead log, two starters at once):
/// looks again as long as the handler would have.
fn patiently<T>(
    patience: &Patience,
    mut attempt: impl FnMut() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let mut wait = Wait::begin();
    loop {
        match attempt() {
            Err(error) if is_busy(&error) && patience.pause(&mut wait) => {}
            done => return done,
        }
    }
}

fn explain(path: &Path, error: &rusqlite::Error, patience: &Patience) -> Error {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => Error::NotADatabase { path },
        Some(ErrorCode::ReadOnly) => match unwritable(&path) {
            Err((closed, _)) => Error::ReadOnly { path: closed },
            Ok(()) => Error::ReadOnly { path },
        },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            let waited_ms = u64::try_from(patience.limit.as_millis()).unwrap_or(u64::MAX);
            Error::Busy { path, waited_ms }
        }
        Some(ErrorCode::CannotOpen) => match unwritable(&path) {
            Ok(()) => Error::CannotOpen { path, why: error.to_string() },
            Err((closed, why)) if is_about_rights(&why) => Error::ReadOnly { path: closed },
            // Too many open files, say: rights would be the wrong place to look.
            Err((_, why)) => Error::CannotOpen { path, why: why.to_string() },
        },
        // The index of a log that somebody else keeps speaks of pages that are not in this file's log.
        _ if error.sqlite_error().is_some_and(|e| e.extended_code == SQLITE_IOERR_SHORT_READ) => {
            let why = format!(
                "{error}; it seems that a file of this name was removed while another process has it open: end that \
                 process, then try again"
            );
            Error::CannotOpen { path, why }
        }
        _ => Error::CannotOpen { path, why: error.to_string() },
    }
}

/// What cannot be written, and why, when SQLite could not open the file or the two beside it: it does not say.
fn unwritable(path: &Path) -> Result<(), (PathBuf, io::Error)> {
    if path.exists() {
        fs::OpenOptions::new().append(true).open(path).map_err(|why| (path.to_owned(), why))?;
    }
    let directory = directory_of(path);
    let probe = directory.join(format!(".poolwright-{}", std::process::id()));
    fs::OpenOptions::new().write(true).create_new(true).open(&probe).map_err(|why| (directory, why))?;
    // It was only to see whether it can be done; what cannot be removed again does no harm.
    let _ = fs::remove_file(&probe);
    Ok(())
}

/// Whoever may change the rights, or mounted the disk for reading, can help.
fn is_about_rights(why: &io::Error) -> bool {
    matches!(why.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}
