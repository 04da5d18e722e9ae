//! Hosts whose clocks are a minute ahead or behind: the server's clock rules, so nobody's task is stolen, nothing runs early or a
//! minute late, and what a dead worker had is taken over in time.

use std::time::Duration;

use acceptance::crew::{Crew, Process};
use acceptance::place::{Place, Sums, play, send_many, sums};
use acceptance::safely;
use acceptance::stage::Part;
use acceptance::wrong_clock::{assert_wrong, off_by};
use poolwright_testbed::RedisServer;

use crate::{WORKER, place};

/// How long those that are not due at once wait: several leases.
const DELAY: Duration = Duration::from_secs(5);

/// In microseconds; far less than the clocks are wrong, and more than a busy machine needs.
const LATE_MAX: i64 = 25_000_000;

const SECOND: i64 = 1_000_000;

const QUEUES: &str = r#"
[runtime]
lease = "1s"

[pools.main]
workers = 2
queues = { work = 1 }
[pools.quick]
workers = 2
queues = { quick = 1 }

[tasks.work]
queue = "work"
retention = "1h"
[tasks.quick]
queue = "quick"
retention = "1h"
"#;

/// The clock that rules, in microseconds.
async fn time(server: &RedisServer) -> i64 {
    let time = server.command(&["TIME"]).await.unwrap();
    let part = |at: usize| time.items()[at].integer().unwrap();
    part(0) * SECOND + part(1)
}

/// When the tasks that wait for their time are due, earliest first, in microseconds.
async fn due_times(server: &RedisServer) -> Vec<i64> {
    let waiting = ["ZRANGE", "asynq:{quick}:scheduled", "0", "-1", "WITHSCORES"];
    let waiting = server.command(&waiting).await.unwrap();
    waiting.items().chunks_exact(2).map(|pair| pair[1].integer().unwrap() * SECOND).collect()
}

/// A worker whose host's clock is off by so much; none: it is right.
async fn worker(crew: &Crew, offset: Option<&str>) -> Process {
    let variables = offset.map(|offset| off_by(offset).unwrap()).unwrap_or_default();
    let worker = crew.worker_with(&[], &variables).await;
    if offset.is_some() {
        assert_wrong(worker.pid);
    }
    worker
}

/// Clients on hosts of all kinds enqueue what is due later; each finds it due by the server's clock.
async fn send_for_later(place: &Place, crew: &Crew, server: &RedisServer) -> Vec<i64> {
    let before = time(server).await;
    play(&place.client().await, "quick", "right", Part::Ok).delay(DELAY).send().await.unwrap();
    for (prefix, offset) in [("ahead", "+60s"), ("behind", "-60s")] {
        let variables = off_by(offset).unwrap();
        let producer = crew.producer_with(("quick", prefix), 3, Part::Ok, DELAY, &variables);
        assert!(producer.ended().await.success());
    }
    let (after, due) = (time(server).await, due_times(server).await);
    let delay = i64::try_from(DELAY.as_micros()).unwrap();
    assert_eq!(due.len(), 7, "none is due before its time");
    for at in &due {
        let expected = before + delay..=after + delay + SECOND;
        assert!(expected.contains(at), "due at {at}, expected {expected:?}");
    }
    due
}

/// Two workers hold tasks for longer than leases last, while others come due; then the first dies.
async fn a_worker_dies(dying: Option<&'static str>, survivor: Option<&'static str>) {
    if off_by("+0s").is_none() {
        return;
    }
    safely(async {
        let place = place(QUEUES);
        let server = place.server().unwrap();
        let crew = Crew::new(WORKER, &place);
        let dying = worker(&crew, dying).await;
        send_many(&place.client().await, "work", "d", 2, |_| Part::Wait).await;
        crew.journal.until(|log| log.starts_by(dying.pid) == 2).await;
        let mut survivor = worker(&crew, survivor).await;
        send_many(&place.client().await, "work", "s", 2, |_| Part::Wait).await;
        crew.journal.until(|log| log.on_stage("main") == 4).await;

        let due = send_for_later(&place, &crew, server).await;
        crew.journal.until(|log| log.on_stage("quick") > 0 || log.start_count() > 4).await;
        let first = time(server).await;
        assert!(first >= due[0], "the first began at {first} and was due at {}", due[0]);
        crew.journal.until(|log| log.start_count() == 4 + due.len()).await;
        let (last, latest) = (time(server).await, due[due.len() - 1]);
        assert!(last <= latest + LATE_MAX, "the last began at {last} and was due at {latest}");

        let inspector = place.inspector().await;
        crew.journal.until_asked(async || sums(&inspector, "quick").await.completed == 7).await;
        crew.journal.look(|log| {
            assert_eq!(log.restarted_tasks(), 0, "nobody's task was taken from him");
            for pid in [dying.pid, survivor.pid] {
                let told = log.told(pid);
                assert_eq!((told.lease_lost, told.taken_over), (0, 0), "{told:?}");
            }
        });

        dying.kill().await;
        let killed = time(server).await;
        survivor.open_all().await;
        crew.journal.until(|log| log.starts_of("d0") == 2 && log.starts_of("d1") == 2).await;
        let again = time(server).await;
        assert!(again <= killed + LATE_MAX, "taken over at {again}, and he died before {killed}");
        crew.journal.until_asked(async || sums(&inspector, "work").await.completed == 4).await;
        survivor.terminate().await;
        assert!(survivor.ended().await.success());
        assert_eq!(sums(&inspector, "work").await, Sums { completed: 4, processed: 4, ..Sums::default() });
        assert_eq!(sums(&inspector, "quick").await, Sums { completed: 7, processed: 7, ..Sums::default() });
        crew.journal.look(|log| {
            assert_eq!(
                (log.restarted_tasks(), log.twin_tokens()),
                (2, 0),
                "only what the dead one had runs again"
            );
            assert!(log.starts().all(|start| !start.was_charged()));
        });
    })
    .await;
}

#[tokio::test]
async fn a_worker_a_minute_ahead_steals_nothing_and_inherits_in_time() {
    a_worker_dies(None, Some("+60s")).await;
}

#[tokio::test]
async fn a_worker_a_minute_behind_is_never_late_and_inherits_in_time() {
    a_worker_dies(None, Some("-60s")).await;
}

#[tokio::test]
async fn workers_a_minute_ahead_and_behind_share_a_queue_until_the_first_dies() {
    a_worker_dies(Some("+60s"), Some("-60s")).await;
}

#[tokio::test]
async fn workers_a_minute_ahead_and_behind_share_a_queue_until_the_second_dies() {
    a_worker_dies(Some("-60s"), Some("+60s")).await;
}
