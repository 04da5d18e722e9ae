//! Hands out pending tasks: queue by queue as the lottery draws, each active from then on with a token and a lease.

use std::collections::VecDeque;
use std::time::Duration;

use poolwright_broker::{Claim, ClaimReply, ClaimRequest, LEASE_AHEAD_MAX, Lottery};
use poolwright_core::{QueueName, State, TaskRecord, Timestamp, Token};
use rusqlite::params;

use crate::rows::{self, Brief, Charges, Stored, claimable_columns, record_columns};
use crate::steps::{exit, quarantine};
use crate::work::Work;

/// Serves all demands of a process.
pub(crate) fn claim(work: &mut Work<'_>, request: &ClaimRequest) -> rusqlite::Result<ClaimReply> {
    let mut reply = ClaimReply::default();
    if request.resent {
        reply.claims = still_held(work, request)?;
        if !reply.claims.is_empty() {
            return Ok(reply);
        }
    }
    let mut lines = Lines::default();
    for nth in 0..request.demands.len() {
        serve(work, request, nth, &mut lines, &mut reply)?;
    }
    Ok(reply)
}

/// Where in a request a task was claimed, as one number: by which demand, and where in the reply.
fn place(demand: usize, nth: usize) -> i64 {
    let [demand, nth] = [demand, nth].map(|number| i64::try_from(number).unwrap_or(0));
    demand << 24 | (nth & 0x00ff_ffff)
}

/// The demand out of a [`place`].
fn demand_of(place: i64) -> usize {
    usize::try_from(place >> 24).unwrap_or(0)
}

/// The front of one queue, read ahead.
#[derive(Default)]
struct Line {
    ready: VecDeque<Stored>,
    /// Nothing is behind what was read.
    ends: bool,
}

/// The fronts of all queues that a request may take from: a handful, so a search is quicker than a hash.
#[derive(Default)]
struct Lines(Vec<(i64, Line)>);

impl Lines {
    fn of(&mut self, queue: i64) -> &mut Line {
        let at = self.0.iter().position(|(seq, _)| *seq == queue).unwrap_or_else(|| {
            self.0.push((queue, Line::default()));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }
}

fn serve(
    work: &mut Work<'_>,
    request: &ClaimRequest,
    nth: usize,
    lines: &mut Lines,
    reply: &mut ClaimReply,
) -> rusqlite::Result<()> {
    let demand = &request.demands[nth];
    let total: u64 = demand.queues.iter().map(|q| u64::from(q.weight.max(1))).sum();
    let mut lottery = Lottery::new(demand.seed, demand.queues.iter().map(|q| q.weight));
    for served in 0..demand.slots {
        let left = u64::from(demand.slots - served);
        let mut found = None;
        for &at in lottery.draw() {
            let drawn = &demand.queues[at];
            let share = (left * u64::from(drawn.weight.max(1))).div_ceil(total);
            found = next(work, &drawn.queue, share, lines, &mut reply.discarded)?;
            if found.is_some() {
                break;
            }
        }
        // No queue had one: the remaining slots would find the same.
        let Some((queue, stored)) = found else { break };
        let task = take(work, queue, stored, request, place(nth, reply.claims.len()))?;
        reply.claims.push(Claim { pool: demand.pool.clone(), task });
    }
    Ok(())
}

/// The next task of the queue that is to be run; flagged ones on the way are discarded.
fn next(
    work: &mut Work<'_>,
    name: &QueueName,
    share: u64,
    lines: &mut Lines,
    discarded: &mut u32,
) -> rusqlite::Result<Option<(i64, Stored)>> {
    let Some(queue) = work.queue(name)?.filter(|queue| !queue.paused) else { return Ok(None) };
    let line = lines.of(queue.seq);
    loop {
        match line.ready.pop_front() {
            Some(stored) if stored.task.cancel_requested => {
                exit::give_way(work, &brief_of(queue.seq, &stored))?;
                *discarded += 1;
                // Its follow-up may stand at the end of the line now.
                line.ends = false;
            }
            Some(stored) => return Ok(Some((queue.seq, stored))),
            None if line.ends => return Ok(None),
            None => read_ahead(work, name, queue.seq, share, line)?,
        }
    }
}

/// Reads about as many as the queue is likely to be asked for; sets aside what does not decode.
fn read_ahead(
    work: &mut Work<'_>,
    name: &QueueName,
    queue: i64,
    share: u64,
    line: &mut Line,
) -> rusqlite::Result<()> {
    let sql = concat!(
        "SELECT ",
        claimable_columns!(),
        " FROM tasks WHERE queue = ?1 AND state = 0 AND state < 2 ORDER BY pos LIMIT ?2"
    );
    let mut poisons = Vec::new();
    {
        let mut statement = work.conn.prepare_cached(sql)?;
        let mut read = statement.query(params![queue, i64::try_from(share).unwrap_or(i64::MAX)])?;
        let mut count = 0;
        while let Some(row) = read.next()? {
            count += 1;
            match rows::claimable(work.conn, row, name) {
                Ok(stored) => line.ready.push_back(stored),
                Err(poison) => poisons.push(poison),
            }
        }
        line.ends = count < share;
    }
    for poison in &poisons {
        quarantine::set_aside(work, poison)?;
    }
    Ok(())
}

fn take(
    work: &mut Work<'_>,
    queue: i64,
    stored: Stored,
    request: &ClaimRequest,
    place: i64,
) -> rusqlite::Result<TaskRecord> {
    let (token, until) = (Token::fresh(work.chance), work.now + request.lease);
    work.hot.claim.execute(
        "UPDATE tasks SET state = 1, at = ?2, token = ?3, started_at = ?4, claim = ?5, claim_place = ?6, \
         progress = NULL WHERE seq = ?1",
        params![
            stored.seq,
            until.as_micros(),
            token.to_bytes(),
            work.now.as_micros(),
            request.id.0.cast_signed(),
            place
        ],
    )?;
    work.moved(queue, Some(State::Pending), Some(State::Active));
    let active = active(stored.task, token, until, work.now);
    Ok(TaskRecord { pending_since: None, progress: None, ..active })
}

fn active(task: TaskRecord, token: Token, until: Timestamp, started: Timestamp) -> TaskRecord {
    TaskRecord {
        state: State::Active,
        token: Some(token),
        lease_until: Some(until),
        started_at: Some(started),
        ..task
    }
}

fn brief_of(queue: i64, stored: &Stored) -> Brief {
    Brief {
        seq: stored.seq,
        queue,
        state: stored.task.state,
        pos: stored.pos,
        flags: stored.flags,
        token: stored.task.token,
        charges: Charges {
            retried: stored.task.retried,
            deferrals: stored.task.deferrals,
            crashes: stored.task.crashes,
        },
    }
}

/// What this very request got before its reply was lost, in the old order and for the old pools.
fn still_held(work: &mut Work<'_>, request: &ClaimRequest) -> rusqlite::Result<Vec<Claim>> {
    let mut names: Vec<&QueueName> =
        request.demands.iter().flat_map(|d| &d.queues).map(|q| &q.queue).collect();
    names.sort_unstable();
    names.dedup();
    let mut held = Vec::new();
    for name in names {
        let Some(queue) = work.queue(name)? else { continue };
        let sql = concat!(
            "SELECT ",
            record_columns!(),
            ", claim_place FROM tasks WHERE queue = ?1 AND state = 1 AND state < 2 AND claim = ?2"
        );
        let mut statement = work.conn.prepare_cached(sql)?;
        let mut read = statement.query(params![queue.seq, request.id.0.cast_signed()])?;
        while let Some(row) = read.next()? {
            let place = row.get("claim_place")?;
            // The same request has the same demands. One that was damaged meanwhile is set aside by who takes it over.
            let demand = request.demands.get(demand_of(place)).or(request.demands.last());
            if let (Ok(stored), Some(demand)) = (rows::record(work.conn, row, name), demand) {
                held.push((place, Claim { pool: demand.pool.clone(), task: stored.task }));
            }
        }
    }
    held.sort_by_key(|(place, _)| *place);
    Ok(held.into_iter().map(|(_, claim)| claim).collect())
}

/// Takes over active tasks whose lease has expired, or ends so far ahead that no right clock can have written it: a new
/// token and lease, everything else stays.
pub(crate) fn take_over(
    work: &mut Work<'_>,
    queue: i64,
    name: &QueueName,
    limit: u32,
    lease: Duration,
) -> rusqlite::Result<Vec<TaskRecord>> {
    let sql = concat!(
        "SELECT ",
        record_columns!(),
        " FROM tasks WHERE queue = ?1 AND state = 1 AND state < 2 AND at > ?2 AND at <= ?3 ORDER BY at, id LIMIT ?4"
    );
    let (mut expired, mut poisons) = (Vec::new(), Vec::new());
    let too_far = (work.now + LEASE_AHEAD_MAX).as_micros();
    // Two ranges of one index; an OR would have it sorted.
    for (after, until) in [(i64::MIN, work.now.as_micros()), (too_far, i64::MAX)] {
        let found = u32::try_from(expired.len() + poisons.len()).unwrap_or(limit);
        let mut statement = work.conn.prepare_cached(sql)?;
        let mut read = statement.query(params![queue, after, until, limit - found])?;
        while let Some(row) = read.next()? {
            match rows::record(work.conn, row, name) {
                Ok(stored) => expired.push(stored),
                Err(poison) => poisons.push(poison),
            }
        }
    }
    for poison in &poisons {
        quarantine::set_aside(work, poison)?;
    }
    let until = work.now + lease;
    let mut taken = Vec::new();
    for Stored { seq, task, .. } in expired {
        let token = Token::fresh(work.chance);
        let mut statement =
            work.conn.prepare_cached("UPDATE tasks SET at = ?2, token = ?3, claim = NULL WHERE seq = ?1")?;
        statement.execute(params![seq, until.as_micros(), token.to_bytes()])?;
        taken.push(TaskRecord { token: Some(token), lease_until: Some(until), ..task });
    }
    Ok(taken)
}
