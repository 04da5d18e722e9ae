//! Settings that an operator changed.

use poolwright_core::Timestamp;
use poolwright_ledger::{Reply, Setting, Settings};
use rusqlite::params;

use super::told;
use crate::SqliteStore;

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
            Setting::check_key(&key)?;
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
