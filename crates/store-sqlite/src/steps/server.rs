//! Heartbeats of worker processes.

use std::time::Duration;

use poolwright_broker::{ServerBeat, ServerId};
use rusqlite::params;

use crate::work::Work;

/// Keeps a heartbeat for so long, in place of the server's earlier one; forgets servers that died.
pub(crate) fn beat(work: &mut Work<'_>, server: &ServerBeat, lasts: Duration) -> rusqlite::Result<()> {
    let beat = ServerBeat { beat_at: work.now, ..server.clone() };
    let body = serde_json::to_string(&beat).expect("a heartbeat is always JSON");
    work.conn.prepare_cached("DELETE FROM servers WHERE until <= ?1")?.execute([work.now.as_micros()])?;
    let mut statement =
        work.conn.prepare_cached("INSERT OR REPLACE INTO servers (id, until, beat) VALUES (?1, ?2, ?3)")?;
    statement.execute(params![server.id.0, (work.now + lasts).as_micros(), body]).map(drop)
}

/// Forgets a server at its stop.
pub(crate) fn retire(work: &mut Work<'_>, server: &ServerId) -> rusqlite::Result<()> {
    work.conn.prepare_cached("DELETE FROM servers WHERE id = ?1")?.execute([&server.0]).map(drop)
}
