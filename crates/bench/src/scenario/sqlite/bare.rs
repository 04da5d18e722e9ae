//! The measure that everything is held against: a bare loop of `rusqlite` with the same file settings and batch sizes.
//!
//! It does what a queue cannot do without and nothing else: one table with a unique id and an index by state and
//! position, inserts in one transaction a batch, a claim and a completion as one transaction each.

use std::path::Path;

use anyhow::Result;
use rusqlite::{Connection, params};

/// The bare table on a file of its own.
pub(crate) struct Bare {
    db: Connection,
    next: i64,
}

impl Bare {
    /// Opens the file with these settings.
    pub(crate) fn open(path: &Path, synchronous: &str) -> Result<Self> {
        let db = Connection::open(path)?;
        db.pragma_update(None, "journal_mode", "WAL")?;
        db.pragma_update(None, "synchronous", synchronous)?;
        db.set_prepared_statement_cache_capacity(16);
        db.execute_batch(
            "CREATE TABLE jobs (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, state INTEGER NOT NULL,
                 ord INTEGER NOT NULL, type TEXT NOT NULL, payload BLOB NOT NULL, claimed_at INTEGER);
             CREATE INDEX jobs_by_state ON jobs (state, ord);",
        )?;
        Ok(Self { db, next: 1 })
    }

    /// Inserts `count` jobs in one transaction; ids grow with time, as ours do.
    pub(crate) fn enqueue(&mut self, count: usize, payload: &[u8]) -> Result<()> {
        let tx = self.db.transaction()?;
        {
            let mut insert = tx.prepare_cached(
                "INSERT INTO jobs (seq, id, state, ord, type, payload) VALUES (?1, ?2, 0, ?1, 'bench', ?3)",
            )?;
            for seq in self.next.. {
                if seq >= self.next + i64::try_from(count)? {
                    break;
                }
                insert.execute(params![seq, format!("018f0000-0000-7000-8000-{seq:012x}"), payload])?;
            }
        }
        tx.commit()?;
        self.next += i64::try_from(count)?;
        Ok(())
    }

    /// Claims up to `batch` jobs in one transaction and completes them in another; how many there were.
    pub(crate) fn drain(&mut self, batch: usize) -> Result<usize> {
        let mut claimed: Vec<i64> = Vec::with_capacity(batch);
        let tx = self.db.transaction()?;
        {
            let mut pick = tx.prepare_cached(
                "SELECT seq, id, type, payload FROM jobs WHERE state = 0 ORDER BY ord LIMIT ?1",
            )?;
            let mut rows = pick.query(params![i64::try_from(batch)?])?;
            while let Some(row) = rows.next()? {
                claimed.push(row.get(0)?);
                let _job: (String, String, Vec<u8>) = (row.get(1)?, row.get(2)?, row.get(3)?);
            }
        }
        {
            let mut take =
                tx.prepare_cached("UPDATE jobs SET state = 1, ord = ?2, claimed_at = ?2 WHERE seq = ?1")?;
            for seq in &claimed {
                take.execute(params![seq, seq + 10_000_000])?;
            }
        }
        tx.commit()?;
        let tx = self.db.transaction()?;
        {
            let mut done = tx.prepare_cached("DELETE FROM jobs WHERE seq = ?1 AND state = 1")?;
            for seq in &claimed {
                done.execute(params![seq])?;
            }
        }
        tx.commit()?;
        Ok(claimed.len())
    }
}
