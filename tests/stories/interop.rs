//! The stories of whole workers beside whole workers of Go's asynq, on one Redis.
//!
//! Without Go they are skipped and say so; with `POOLWRIGHT_REQUIRE_GO` in the environment they fail. Those with asynq's command
//! line want that alone.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../crates/store-redis/tests/interop/asynq.rs"]
mod asynq;
mod command_line;
#[path = "../../crates/store-redis/tests/interop/go.rs"]
mod go;

use std::collections::BTreeMap;

use acceptance::crew::Crew;
use acceptance::journal::What;
use acceptance::place::{Place, Sums, send, send_many, sums};
use acceptance::safely;
use acceptance::stage::{Part, Play};
use poolwright::core::Class;
use poolwright::inspector::Cancelled;
use poolwright::ledger::{Filter, ListRequest};
use serde_json::{Value, json};

use go::{Go, Heard, until};

const WORKER: &str = env!("CARGO_BIN_EXE_story_worker");

const QUEUES: &str = r#"
[runtime]
lease = "1s"

[retry.soon]
kind = "fixed"
delay = "20ms"

[task_defaults]
on_error = { no_handler = "soon" }
retry = "soon"
retention = "1h"
max_crashes = 50

[pools.main]
workers = 8
queues = { work = 3, side = 1 }

[tasks.ours]
queue = "work"
[tasks.theirs]
queue = "work"
[tasks.aside]
queue = "side"
"#;

const EAGER: [&str; 8] = [
    "--queues",
    "work",
    "--task-check-interval",
    "20ms",
    "--delayed-check-interval",
    "50ms",
    "--retry-delay",
    "50ms",
];

/// A place on Redis with Go beside it; none where Go is not installed.
fn place() -> Option<(Place, Go)> {
    go::program()?;
    let place = Place::on_redis(QUEUES);
    let go = Go::on(place.server().unwrap().url())?;
    Some((place, go))
}

fn line(task_type: &str, id: &str, payload: &Value) -> Value {
    json!({"type": task_type, "queue": "work", "id": id, "payload_json": payload, "retention_ms": 3_600_000})
}

#[tokio::test]
async fn a_type_that_one_side_does_not_know_is_given_back_without_harm() {
    let Some((place, go)) = place() else { return };
    safely(async {
        let play = Play::new();
        let app = place.playing(&play.stage, &["ours"]).tune(acceptance::impatient).start().await.unwrap();
        let mut theirs =
            (0..5).map(|at| line("theirs", &format!("theirs{at}"), &json!("x"))).collect::<Vec<_>>();
        // One that has no retry to lose, and one with a lock.
        theirs[0]["max_retry"] = json!(0);
        theirs[1]["unique_ms"] = json!(3_600_000);
        go.enqueue(&theirs).await;
        // Again and again, and it costs nothing; what we know is done meanwhile.
        send_many(&app.client(), "ours", "ours", 5, |_| Part::Ok).await;
        let status = app.until(|status| status.counts.no_handler >= 20 && status.counts.completed == 5).await;
        assert_eq!((status.counts.archived, status.counts.retried), (0, 0));
        let again = go
            .run(
                "enqueue",
                &[],
                &[json!({"type": "theirs", "queue": "work", "payload_json": "x", "unique_ms": 60_000})],
            )
            .await;
        assert_eq!(again[0]["kind"], "duplicate", "it kept its lock");

        // Ours goes on looking, and leaves them to Go once its heartbeat has met Go's server.
        let worker = go.worker(&EAGER).await;
        let mut inspector = go.inspector();
        for at in 0..5 {
            let id = format!("theirs{at}");
            inspector.until_state("work", &id, "completed").await;
            assert_eq!(worker.event("start", &id).await["retried"], 0, "it lost no retry");
        }
        worker.stop().await;
        app.shutdown().await.unwrap();
        let ended = sums(&place.inspector().await, "work").await;
        assert_eq!(ended, Sums { completed: 10, processed: 10, ..Sums::default() });
    })
    .await;
}

/// What Go does not know is a failure there, as among its own; ours runs what comes back.
#[tokio::test]
async fn what_go_does_not_know_comes_back_to_us() {
    let Some((place, go)) = place() else { return };
    safely(async {
        let worker = go.worker(&[&EAGER[..], &["--types", "theirs"]].concat()).await;
        let client = place.client().await;
        send_many(&client, "ours", "t", 5, |_| Part::Ok).await;
        for at in 0..5 {
            worker.event("failed", &format!("t{at}")).await;
        }
        let play = Play::new();
        let app = place.playing(&play.stage, &["ours"]).tune(acceptance::impatient).start().await.unwrap();
        app.until(|status| status.counts.completed == 5).await;
        worker.stop().await;
        let ended = sums(&app.inspector(), "work").await;
        assert_eq!((ended.completed, ended.archived, ended.processed), (5, 0, 5 + ended.failed));
        assert!(ended.failed >= 5);
        app.shutdown().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn what_go_archives_has_its_dead_letter_with_us() {
    let Some((place, go)) = place() else { return };
    safely(async {
        go.enqueue(&[line("theirs", "dead", &json!({"do": "skip_retry", "error": "never"}))]).await;
        let worker = go.worker(&EAGER).await;
        let mut inspector = go.inspector();
        inspector.until_state("work", "dead", "archived").await;
        worker.stop().await;
        let play = Play::new();
        let app = place.playing(&play.stage, &["ours"]).tune(acceptance::impatient).start().await.unwrap();
        app.until(|status| status.counts.letters_recorded == 1).await;
        // By hand, with asynq's inspector.
        inspector.act("pause", "work", "").await;
        send(&app.client(), "ours", "waits", Part::Ok).await;
        inspector.act("archive", "work", "waits").await;
        inspector.act("unpause", "work", "").await;
        app.until(|status| status.counts.letters_recorded == 2).await;
        let stores = place.stores().await;
        let letters = app.inspector().dead_letters(stores.ledger.clone());
        let page =
            letters.list(ListRequest { filter: Filter::default(), ..ListRequest::default() }).await.unwrap();
        let said: BTreeMap<_, _> =
            page.letters.into_iter().map(|letter| (letter.task_id.to_string(), letter)).collect();
        assert_eq!(
            (said["dead"].class, said["dead"].last_error.as_str()),
            (Class::Transient, "never: skip retry for the task")
        );
        assert_eq!(said["waits"].class, Class::Operator);
        assert_eq!(said.len(), 2);
        app.shutdown().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn an_operator_of_either_side_ends_what_the_other_runs() {
    let Some((place, go)) = place() else { return };
    safely(async {
        let play = Play::new();
        let app = place.playing(&play.stage, &["ours"]).tune(acceptance::impatient).start().await.unwrap();
        send(&app.client(), "ours", "a", Part::Wait).await;
        play.journal.until(|log| log.starts_of("a") == 1).await;
        let mut inspector = go.inspector();
        // What is published to nobody is heard by nobody.
        let server = place.server().unwrap();
        let subscribed = async || {
            until("a subscription", async || {
                let heard = server.command(&["PUBSUB", "NUMSUB", "asynq:cancel"]).await.unwrap();
                (heard.items()[1].integer() >= Some(1)).then_some(())
            })
            .await;
        };
        let servers = inspector.get(json!({"op": "servers"})).await;
        assert_eq!(servers[0]["queues"], json!({"work": 3, "side": 1}));
        assert_eq!((&servers[0]["concurrency"], &servers[0]["pid"]), (&json!(8), &json!(std::process::id())));
        subscribed().await;
        inspector.get(json!({"op": "cancel", "id": "a"})).await;
        app.until(|status| status.counts.discarded == 1).await;
        assert_eq!(play.journal.look(|log| log.count(What::Asked(Some(Class::Cancelled)))), 1);
        assert_eq!(inspector.state("work", "a").await, "task_not_found");
        app.shutdown().await.unwrap();

        // Go tries again what was cancelled; the flag is still there for the next of ours who meets it.
        let worker = go.worker(&[&EAGER[..6], &["--retry-delay", "1h"]].concat()).await;
        go.enqueue(&[line("ours", "b", &json!({"do": "wait"}))]).await;
        worker.event("start", "b").await;
        subscribed().await;
        let ours = place.inspector().await;
        assert_eq!(ours.cancel_task("b").await.unwrap(), Cancelled::Signalled);
        assert_eq!(worker.event("failed", "b").await["error"], "context canceled");
        inspector.until_state("work", "b", "retry").await;
        worker.stop().await;
        inspector.act("run", "work", "b").await;
        let app = place.playing(&play.stage, &["ours"]).tune(acceptance::impatient).start().await.unwrap();
        inspector.until_state("work", "b", "task_not_found").await;
        assert_eq!(play.journal.look(|log| log.starts_of("b")), 0);
        app.shutdown().await.unwrap();
    })
    .await;
}

const TASKS: usize = 2_000;

/// Workers of both sides, processes all, each killed at a moment of its own. Where Go's are killed it takes a minute: half until
/// their leases are over, half until it is certain that nobody moves them.
#[tokio::test]
async fn worker_processes_of_both_sides_are_killed_and_nothing_is_lost_or_done_for_nothing() {
    let Some((place, go)) = place() else { return };
    safely(async {
        let crew = Crew::new(WORKER, &place);
        let heard = Heard::default();
        // Ours read them as parts, and a worker in Go takes whatever is no order for success.
        let part = |at| if at % 20 == 7 { Part::Long(30) } else { Part::Ok };
        send_many(&place.client().await, "ours", "t", TASKS, part).await;
        let mut killed = Vec::new();
        for moment in [30, 50, 70, 90] {
            let ours = crew.worker().await;
            let theirs = go.worker_into(&heard, &EAGER).await;
            let begun = heard.look(<[_]>::len);
            crew.journal.until(|log| log.starts_by(ours.pid) >= moment).await;
            heard.until(|lines| lines.len() >= begun + moment).await;
            killed.push(theirs.pid);
            tokio::join!(ours.kill(), theirs.kill());
        }
        let mut survivor = crew.worker().await;
        survivor.open_all().await;
        let theirs = go.worker_into(&heard, &EAGER).await;
        let inspector = place.inspector().await;
        until("the end of all tasks", async || {
            (sums(&inspector, "work").await.completed == TASKS as u64).then_some(())
        })
        .await;
        survivor.terminate().await;
        assert!(survivor.ended().await.success());
        theirs.stop().await;

        let ended = sums(&inspector, "work").await;
        let all = TASKS as u64;
        let expected =
            Sums { completed: all, processed: all + ended.failed, failed: ended.failed, ..Sums::default() };
        assert_eq!(ended, expected);
        assert!(inspector.servers().await.unwrap().is_empty());
        let mut go_starts = BTreeMap::<String, usize>::new();
        heard.look(|lines| {
            for line in lines.iter().filter(|line| line["event"] == "start") {
                *go_starts.entry(line["id"].as_str().unwrap().to_owned()).or_default() += 1;
            }
        });
        crew.journal.look(|log| {
            let share = go_starts.values().sum::<usize>();
            let runs = |id: &str| log.starts_of(id) + go_starts.get(id).copied().unwrap_or(0);
            let again: usize =
                (0..TASKS).map(|at| runs(&format!("t{at}")).checked_sub(1).expect("each ran")).sum();
            eprintln!("figures: {} starts of ours, {share} of Go, {again} of them again", log.start_count());
            assert_eq!(log.twin_tokens(), 0);
            assert!(log.start_count() > 0 && share > 0, "both had their share");
            // Eight workers of ours and as many of Go's as its default can have been at work at each of four moments.
            assert!(again <= 4 * (8 + 10), "{again} runs again");
        });
    })
    .await;
}
