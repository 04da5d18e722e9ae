//! Settings that an operator changed.

use poolwright_core::Timestamp;
use poolwright_ledger::{Error, Reply, Setting, Settings};
use rusqlite::params;

use super::told;
use crate::SqliteStore;

/// The longest key, in bytes.
const KEY_BYTES_MAX: usize = 255;

fn check(key: &str) -> Result<(), Error> {
    let why = match key {
        _ if key.trim().is_empty() => "a setting's key must not be empty".to_owned(),
        _ if key.len() > KEY_BYTES_MAX => {
            format!("a setting's key has at most {KEY_BYTES_MAX} bytes, this one has {}", key.len())
        }
        _ if key.chars().any(char::is_control) => {
            format!("a setting's key has no control characters, this is {key:?}")
        }
        _ => return Ok(()),
    };
    Err(Error::Refused { why })
}

impl Settings for SqliteStore {
    fn settings(&self) -> Reply<'_, Vec<Setting>> {
        let read = self.read(|conn| {
            let mut statement = conn.prepare_cached("SELECT key, value, at FROM settings ORDER BY key")?;
            let settings = statement.query_map([], |row| {
                let at = Timestamp::from_micros(row.get(2)?);
                Ok(Setting { key: row.get(0)?, value: row.get(1)?, at })
            })?;
            Ok(settings.collect::<Result<Vec<_>, _>>()?)
        });
        Box::pin(async { read.await.map_err(told) })
    }

    fn set(&self, key: String, value: String) -> Reply<'_, ()> {
        Box::pin(async move {
            check(&key)?;
            let set = self.write(1, move |work| {
                let mut statement = work.conn.prepare_cached(
                    "INSERT INTO settings (key, value, at) VALUES (?1, ?2, ?3) \
                     ON CONFLICT (key) DO UPDATE SET value = excluded.value, at = excluded.at",
                )?;
                statement.execute(params![key, value, work.now.as_micros()])?;
                Ok(())
            });
            set.await.map_err(told)
        })
    }

    fn unset(&self, key: String) -> Reply<'_, bool> {
        let unset = self.write(1, move |work| {
            Ok(work.conn.prepare_cached("DELETE FROM settings WHERE key = ?1")?.execute([&key])? == 1)
        });
        Box::pin(async { unset.await.map_err(told) })
    }
}
