//! Minutes of chaos: three worker processes, killed or stopped and started again without end, while producers go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use acceptance::crew::{Crew, Process};
use acceptance::journal::Journal;
use acceptance::place::{Place, Sums, send_many, sums};
use acceptance::stage::Part;
use poolwright::core::{Chance, Timestamp};
use poolwright::ledger::Filter;

use crate::{WORKER, minutes, now, patiently, secs_since};

/// Producers wait while more tasks than this are pending in their queue.
const PENDING_MAX: u64 = 2_000;
const BATCH: usize = 200;
const RETRIES: u64 = 3;

const QUEUES: &str = r#"
[runtime]
lease = "2s"
heartbeat = "1s"
grace = "500ms"

[retry.soon]
kind = "fixed"
delay = "20ms"

[task_defaults]
retry = "soon"
max_retry = 3
max_crashes = 1_000

[pools.main]
workers = 8
queues = { work = 1 }
[pools.side]
workers = 4
queues = { side = 1 }
[pools.shared]
workers = 4
borrows = { work = 2, side = 1 }

[tasks.work]
queue = "work"
[tasks.side]
queue = "side"
"#;

/// What the task of this number does.
fn part(at: usize) -> Part {
    match at % 200 {
        7 => Part::Fail,
        77 => Part::Permanent,
        13 | 63 | 113 | 163 => Part::Long(20),
        _ => Part::Ok,
    }
}

/// Enqueues until the time is over; gives how many.
async fn produce(place: &Place, journal: &Journal, queue: &'static str, until: Timestamp) -> usize {
    let (client, inspector) = (place.client().await, place.inspector().await);
    let mut sent = 0;
    while now() < until {
        send_many(&client, queue, &format!("{queue}{sent}-"), BATCH, part).await;
        sent += BATCH;
        journal.until_asked(async || sums(&inspector, queue).await.pending < PENDING_MAX).await;
    }
    // Whoever waits for the end of the time may have heard the last news before it.
    journal.nudge();
    sent
}

#[derive(Default)]
struct Deaths {
    kills: AtomicU64,
    stops: AtomicU64,
}

/// Keeps one place filled with a worker until the time is over; gives the last one.
async fn keep_running(crew: &Crew, chance: Chance, deaths: &Deaths, until: Timestamp) -> Process {
    loop {
        let worker = crew.worker().await;
        if now() >= until {
            return worker;
        }
        let enough = 50 + (chance.next() % 1_500) as usize;
        crew.journal.until(|log| log.starts_by(worker.pid) >= enough || now() >= until).await;
        if chance.roll() < 0.7 {
            deaths.kills.fetch_add(1, Ordering::Relaxed);
            worker.kill().await;
        } else {
            deaths.stops.fetch_add(1, Ordering::Relaxed);
            worker.terminate().await;
            assert!(worker.ended().await.success());
        }
    }
}

#[tokio::test]
async fn soak_chaos() {
    Box::pin(chaos("chaos", Place::new(QUEUES))).await;
}

#[tokio::test]
async fn soak_redis_chaos() {
    Box::pin(chaos("chaos on redis", Place::on_redis(QUEUES))).await;
}

async fn chaos(name: &str, place: Place) {
    let story = Box::pin(async {
        let crew = Crew::with_journal(WORKER, &place, Journal::lean());
        let deaths = Deaths::default();
        let (begun, chance) = (now(), Chance::seeded(6));
        let until = begun + minutes();
        let seat = || keep_running(&crew, Chance::seeded(chance.next()), &deaths, until);
        let (work, side, a, b, c) = tokio::join!(
            produce(&place, &crew.journal, "work", until),
            produce(&place, &crew.journal, "side", until),
            seat(),
            seat(),
            seat(),
        );
        let mut workers = [a, b, c];
        for worker in &mut workers {
            worker.open_all().await;
        }
        let inspector = place.inspector().await;
        let is_calm = |sums: Sums| (sums.pending, sums.active, sums.later) == (0, 0, 0);
        crew.journal
            .until_asked(async || {
                is_calm(sums(&inspector, "work").await) && is_calm(sums(&inspector, "side").await)
            })
            .await;
        let secs = secs_since(begun);

        let mut archived = 0;
        for (queue, sent) in [("work", work), ("side", side)] {
            // One in two hundred fails until it has no retry left, one fails for good at once.
            let each = (sent / BATCH) as u64;
            let failed = each * (RETRIES + 1) + each;
            let processed = sent as u64 + each * RETRIES;
            let ended = Sums { archived: 2 * each, processed, failed, ..Sums::default() };
            assert_eq!(sums(&inspector, queue).await, ended, "{queue}: {sent} sent");
            archived += ended.archived;
        }
        let stores = place.stores().await;
        let letters = inspector.dead_letters(Arc::clone(&stores.ledger));
        crew.journal.until_asked(async || letters.count(Filter::default()).await.unwrap() == archived).await;
        let restarted = crew.journal.look(|log| {
            assert_eq!((log.started_tasks(), log.twin_tokens()), (work + side, 0));
            log.start_count() as u64 - (work + side) as u64 - archived / 2 * RETRIES
        });
        for worker in workers {
            worker.terminate().await;
            assert!(worker.ended().await.success());
        }
        let (kills, stops) = (deaths.kills.into_inner(), deaths.stops.into_inner());
        let tasks = work + side;
        let rate = tasks as f64 / secs;
        println!(
            "figures: {name} kills={kills} stops={stops} tasks={tasks} per_sec={rate:.0} run_again={restarted} lost=0"
        );
    });
    patiently(story).await;
}
