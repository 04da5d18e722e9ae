//! A quick measurement of this store against a bare loop on the same file settings, for whoever works on it.
//! The numbers that gate anything are those of `crates/bench`.
//!
//! `cargo run --release -p poolwright-store-sqlite --example measure -- [normal|full] [tasks] [bare|store|enqueue|singles|pickup|hops]`

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use poolwright_broker::{Broker, ClaimId, ClaimRequest, Demand, Dispatch, Held, Submit, WeightedQueue};
use poolwright_core::clock::SystemClock;
use poolwright_core::{Chance, Clock, NewTask, PoolName, QueueName, Settlement, TaskId, TypeName};
use poolwright_store_sqlite::{Options, SqliteStore, Synchronous};
use rusqlite::{Connection, params};
use tokio::sync::oneshot;

type Outcome = Result<(), Box<dyn std::error::Error>>;

const PAYLOAD: [u8; 100] = [b'x'; 100];
const BATCH: usize = 100;

fn main() -> Outcome {
    let mut args = std::env::args().skip(1);
    let synchronous = args.next().unwrap_or_else(|| "normal".to_owned());
    let tasks = args.next().map_or(Ok(50_000), |text| text.parse())?;
    let only = args.next();
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    for _ in 0..2 {
        if wanted("bare") {
            bare(&synchronous, tasks)?;
        }
        if wanted("store") {
            runtime.block_on(store(&synchronous, tasks, &[10, 50, 100]))?;
        }
        if only.as_deref() == Some("enqueue") {
            runtime.block_on(store(&synchronous, tasks, &[]))?;
        }
    }
    if wanted("singles") {
        runtime.block_on(singles(&synchronous, tasks))?;
    }
    if wanted("pickup") {
        runtime.block_on(pickup(&synchronous))?;
    }
    if wanted("hops") {
        runtime.block_on(hops(tasks))?;
    }
    Ok(())
}

/// When something began, by the clock on the wall and by the processor time of this process.
struct Since(Instant, Duration);

impl Since {
    fn now() -> Self {
        Self(Instant::now(), processor_time())
    }

    /// On a busy machine only the processor time says much.
    fn report(&self, what: &str, count: usize) {
        let (wall, busy) = (self.0.elapsed().as_secs_f64(), processor_time() - self.1);
        let each = busy.as_secs_f64() * 1e6 / count as f64;
        println!("{what:<44} {:>9.0} a second {each:>7.2} us of processor each", count as f64 / wall);
    }
}

/// User and system time of this process, as Linux counts it; zero elsewhere.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or("").split(' ').collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}

fn options(dir: &Path, synchronous: &str) -> Options {
    let synchronous = if synchronous == "full" { Synchronous::Full } else { Synchronous::Normal };
    Options { synchronous, ..Options::new(dir.join("tasks.db")) }
}

/// One table, one unique id, one index; what a queue cannot do without.
fn bare(synchronous: &str, tasks: usize) -> Outcome {
    let dir = tempfile::tempdir()?;
    let mut db = Connection::open(dir.path().join("bare.db"))?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.pragma_update(None, "synchronous", synchronous)?;
    db.execute_batch(
        "CREATE TABLE jobs (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, state INTEGER NOT NULL,
             ord INTEGER NOT NULL, type TEXT NOT NULL, payload BLOB NOT NULL, claimed_at INTEGER);
         CREATE INDEX jobs_by_state ON jobs (state, ord);",
    )?;
    let since = Since::now();
    for first in (0..tasks).step_by(BATCH) {
        let tx = db.transaction()?;
        for seq in first..first + BATCH {
            let mut insert = tx.prepare_cached(
                "INSERT INTO jobs (seq, id, state, ord, type, payload) VALUES (?1, ?2, 0, ?1, 'bench', ?3)",
            )?;
            insert.execute(params![
                seq as i64,
                format!("018f0000-0000-7000-8000-{seq:012x}"),
                &PAYLOAD[..]
            ])?;
        }
        tx.commit()?;
    }
    since.report("bare: enqueue in batches of 100", tasks);
    for batch in [10, 50, 100] {
        let since = Since::now();
        let share = tasks / 3 / batch * batch;
        for _ in 0..share / batch {
            bare_round(&mut db, batch)?;
        }
        since.report(&format!("bare: claim and complete in batches of {batch}"), share);
    }
    Ok(())
}

fn bare_round(db: &mut Connection, batch: usize) -> Outcome {
    let tx = db.transaction()?;
    let claimed: Vec<i64> = {
        let mut pick = tx.prepare_cached(
            "SELECT seq, id, type, payload FROM jobs WHERE state = 0 ORDER BY ord LIMIT ?1",
        )?;
        let rows = pick.query_map([batch as i64], |row| {
            let _job: (String, String, Vec<u8>) = (row.get(1)?, row.get(2)?, row.get(3)?);
            row.get(0)
        })?;
        rows.collect::<Result<_, _>>()?
    };
    for seq in &claimed {
        tx.prepare_cached("UPDATE jobs SET state = 1, ord = ?2, claimed_at = ?2 WHERE seq = ?1")?
            .execute(params![seq, seq + 10_000_000])?;
    }
    tx.commit()?;
    let tx = db.transaction()?;
    for seq in &claimed {
        tx.prepare_cached("DELETE FROM jobs WHERE seq = ?1 AND state = 1")?.execute([seq])?;
    }
    tx.commit()?;
    Ok(())
}

fn queue() -> QueueName {
    QueueName::new("default").expect("a plain word is a name")
}

fn task(chance: &Chance) -> NewTask {
    let id = TaskId::fresh(SystemClock.now(), chance);
    NewTask::new(queue(), id, TypeName::new("bench").expect("a plain word is a name"), &PAYLOAD[..])
}

fn request(chance: &Chance, slots: usize) -> ClaimRequest {
    let demand = Demand {
        pool: PoolName::new("core").expect("a plain word is a name"),
        slots: slots as u32,
        queues: vec![WeightedQueue { queue: queue(), weight: 1 }],
        seed: chance.next(),
    };
    ClaimRequest {
        id: ClaimId::fresh(chance),
        resent: false,
        lease: Duration::from_secs(10),
        demands: vec![demand],
    }
}

async fn round(
    store: &SqliteStore,
    chance: &Chance,
    slots: usize,
) -> Result<usize, poolwright_broker::Error> {
    let claims = store.claim(request(chance, slots)).await?.claims;
    let done = Settlement::Complete { retain_for: Duration::ZERO, result: None };
    let settlements: Vec<_> =
        claims.iter().filter_map(|claim| Held::of(&claim.task)).map(|held| (held, done.clone())).collect();
    let count = settlements.len();
    for outcome in store.settle(settlements).await? {
        outcome?;
    }
    Ok(count)
}

async fn store(synchronous: &str, tasks: usize, batches: &[usize]) -> Outcome {
    let dir = tempfile::tempdir()?;
    let store = SqliteStore::open(options(dir.path(), synchronous))?;
    let chance = Chance::seeded(1);
    let since = Since::now();
    for _ in 0..tasks / BATCH {
        store.enqueue((0..BATCH).map(|_| task(&chance)).collect()).await?;
    }
    since.report("store: enqueue in batches of 100", tasks);
    for &batch in batches {
        let since = Since::now();
        let share = tasks / 3 / batch * batch;
        let mut drained = 0;
        while drained < share {
            drained += round(&store, &chance, batch).await?;
        }
        since.report(&format!("store: claim and complete in batches of {batch}"), share);
    }
    store.close().await?;
    Ok(())
}

/// One task a call, from fifty callers.
async fn singles(synchronous: &str, tasks: usize) -> Outcome {
    let dir = tempfile::tempdir()?;
    let store = SqliteStore::open(options(dir.path(), synchronous))?;
    let since = Since::now();
    let callers: Vec<_> = (0..50)
        .map(|seed| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let chance = Chance::seeded(seed);
                for _ in 0..tasks / 50 {
                    store.enqueue(vec![task(&chance)]).await.expect("nothing is in the way");
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await?;
    }
    since.report("store: enqueue one by one from 50 callers", tasks);
    store.close().await?;
    Ok(())
}

/// From the call of an enqueue to the claimed task in the hands of one who waited.
async fn pickup(synchronous: &str) -> Outcome {
    let dir = tempfile::tempdir()?;
    let store = SqliteStore::open(options(dir.path(), synchronous))?;
    let other = SqliteStore::open(options(dir.path(), synchronous))?;
    for (what, producer) in [("in process", &store), ("across processes", &other)] {
        let chance = Chance::seeded(2);
        let mut times = Vec::new();
        let mut watch = poolwright_broker::Signal::watch(&*store, vec![queue()]);
        round(&store, &chance, 1).await?;
        for _ in 0..200 {
            tokio::time::sleep(Duration::from_millis(7)).await;
            let since = Instant::now();
            producer.enqueue(vec![task(&chance)]).await?;
            while round(&store, &chance, 1).await? == 0 {
                watch.changed().await;
            }
            times.push(since.elapsed());
        }
        times.sort_unstable();
        println!("pick-up and end {what}: p50 {:?}, p99 {:?}", times[100], times[197]);
    }
    store.close().await?;
    other.close().await?;
    Ok(())
}

/// What a hop to another thread costs: a hundred statements in a transaction, asked for one by one or all at once.
async fn hops(statements: usize) -> Outcome {
    for (what, per_hop) in [("one hop a statement", 1), ("one hop a batch of 100", BATCH)] {
        let dir = tempfile::tempdir()?;
        let db = Connection::open(dir.path().join("hops.db"))?;
        db.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
             CREATE TABLE jobs (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, payload BLOB NOT NULL)",
        )?;
        let (hop, mut hops) = tokio::sync::mpsc::channel::<(usize, usize, oneshot::Sender<()>)>(64);
        let thread = std::thread::spawn(move || -> rusqlite::Result<()> {
            while let Some((first, count, done)) = hops.blocking_recv() {
                if first % BATCH == 0 {
                    db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
                }
                for seq in first..first + count {
                    let mut insert =
                        db.prepare_cached("INSERT INTO jobs (seq, id, payload) VALUES (?1, ?2, ?3)")?;
                    insert.execute(params![seq as i64, format!("018f-{seq:012x}"), &PAYLOAD[..]])?;
                }
                if (first + count) % BATCH == 0 {
                    db.prepare_cached("COMMIT")?.execute([])?;
                }
                let _ = done.send(());
            }
            Ok(())
        });
        let since = Since::now();
        for first in (0..statements).step_by(per_hop) {
            let (done, answer) = oneshot::channel();
            hop.send((first, per_hop, done)).await?;
            answer.await?;
        }
        since.report(&format!("a thread of its own: {what}"), statements);
        drop(hop);
        thread.join().expect("the thread does not panic")?;
    }
    Ok(())
}
