//! Removes what was kept long enough.

use poolwright_broker::{ArchiveLimits, HISTORY_DAYS_MAX, Swept};
use poolwright_core::State;
use rusqlite::{OptionalExtension, params};

use crate::rows::{self, Brief, brief_columns, flag};
use crate::steps::{exit, queue};
use crate::work::Work;

/// Tasks that one sweep removes at most, so that it holds the file for a moment only.
const SWEPT_MAX: u64 = 1_000;

/// Sweeps these queues; also clears a part of what removed queues left.
pub(crate) fn sweep(work: &mut Work<'_>, limits: &[ArchiveLimits]) -> rusqlite::Result<Swept> {
    let mut swept = Swept::default();
    for limit in limits {
        let Some(queue) = work.queue(&limit.queue)? else { continue };
        let budget = SWEPT_MAX - swept.expired - swept.trimmed;
        let (expired, more) = remove(work, expired(work, queue.seq, budget)?, budget)?;
        let budget = budget - expired;
        let (trimmed, more_archived) = remove(work, beyond(work, queue.seq, limit, budget)?, budget)?;
        swept.expired += expired;
        swept.trimmed += trimmed;
        swept.more |= more || more_archived;
        forget_days(work, queue.seq)?;
    }
    // A process may have died while it cleared a queue that was removed.
    swept.more |= queue::clear_removed(work)?;
    Ok(swept)
}

/// Removes at most `budget` of those that were found; says how many, and whether there were more.
fn remove(work: &mut Work<'_>, found: Vec<Brief>, budget: u64) -> rusqlite::Result<(u64, bool)> {
    let more = found.len() as u64 > budget;
    let mut removed = 0;
    for task in found.iter().take(usize::try_from(budget).unwrap_or(usize::MAX)) {
        exit::remove(work, task)?;
        removed += 1;
    }
    Ok((removed, more))
}

fn expired(work: &Work<'_>, queue: i64, budget: u64) -> rusqlite::Result<Vec<Brief>> {
    let sql = concat!(
        "SELECT ",
        brief_columns!(),
        " FROM tasks WHERE queue = ?1 AND state = 5 AND at <= ?2 ORDER BY at, id LIMIT ?3"
    );
    let mut statement = work.conn.prepare_cached(sql)?;
    let limit = i64::try_from(budget + 1).unwrap_or(i64::MAX);
    let found = statement.query_map(params![queue, work.now.as_micros(), limit], rows::brief)?;
    found.collect()
}

/// The archived tasks that the limits let go, oldest first, one more than the budget.
fn beyond(work: &Work<'_>, queue: i64, limits: &ArchiveLimits, budget: u64) -> rusqlite::Result<Vec<Brief>> {
    // Too old: failed at this time or before.
    let too_old = (work.now - limits.age_max).as_micros();
    let newest_to_go = excess(work, queue, limits)?;
    let (at, id) = newest_to_go.unwrap_or((i64::MIN, String::new()));
    let spared = if limits.spare_unrecorded { flag::UNRECORDED } else { 0 };
    let sql = concat!(
        "SELECT ",
        brief_columns!(),
        " FROM tasks WHERE queue = ?1 AND state = 4 AND at <= max(?2, ?3) \
         AND (at <= ?2 OR (at, id) <= (?3, ?4)) AND flags & ?5 = 0 ORDER BY at, id LIMIT ?6"
    );
    let mut statement = work.conn.prepare_cached(sql)?;
    let limit = i64::try_from(budget + 1).unwrap_or(i64::MAX);
    let found = statement.query_map(params![queue, too_old, at, id, spared, limit], rows::brief)?;
    found.collect()
}

/// The newest of those that are too many.
fn excess(work: &Work<'_>, queue: i64, limits: &ArchiveLimits) -> rusqlite::Result<Option<(i64, String)>> {
    // Walked only while there are too many, and then over as many entries as may stay.
    if work.counts(queue)?[State::Archived as usize] <= limits.tasks_max {
        return Ok(None);
    }
    let mut statement = work.conn.prepare_cached(
        "SELECT at, id FROM tasks WHERE queue = ?1 AND state = 4 AND at IS NOT NULL \
         ORDER BY at DESC, id DESC LIMIT 1 OFFSET ?2",
    )?;
    let keep = i64::try_from(limits.tasks_max).unwrap_or(i64::MAX);
    statement.query_row([queue, keep], |row| Ok((row.get(0)?, row.get(1)?))).optional()
}

fn forget_days(work: &Work<'_>, queue: i64) -> rusqlite::Result<()> {
    let oldest = work.now.day() - i64::from(HISTORY_DAYS_MAX);
    let mut statement = work.conn.prepare_cached("DELETE FROM days WHERE queue = ?1 AND day <= ?2")?;
    statement.execute([queue, oldest]).map(drop)
}
