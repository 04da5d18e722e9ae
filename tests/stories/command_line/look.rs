//! What it shows: queues, days, sums, tasks and servers.

use acceptance::safely;
use poolwright::core::TaskRecord;
use poolwright::inspector::QueueView;
use poolwright::prelude::*;
use serde_json::{Value, json};

use super::{Desk, HOST, Is, is_left, now};
use crate::asynq::{Row, Said, rfc_3339, row, seconds};
use crate::until;

/// The counts of a queue by the names that asynq has for them; `aggregating` is what only asynq has.
fn counts(queue: &QueueView) -> Row {
    let counts = [
        ("active", queue.active),
        ("pending", queue.pending),
        ("aggregating", 0),
        ("scheduled", queue.scheduled),
        ("retry", queue.retry),
        ("archived", queue.archived),
        ("completed", queue.completed),
    ];
    counts.map(|(state, count)| (state.to_owned(), count.to_string())).into()
}

/// What asynq calls the size: ours has no completed ones in it.
const fn size(queue: &QueueView) -> u64 {
    queue.size + queue.completed
}

fn day(processed: u64, failed: u64) -> Row {
    let rate = match processed {
        0 => "N/A".to_owned(),
        _ => format!("{:.2}%", failed as f64 / processed as f64 * 100.0),
    };
    row([("processed", &*processed.to_string()), ("failed", &*failed.to_string()), ("error rate", &*rate)])
}

#[tokio::test]
async fn it_shows_each_queue_with_our_inspectors_numbers() {
    let Some(desk) = Desk::open().await else { return };
    safely(async {
        let mut names = desk.asynq.lines("queue ls").await;
        names.sort_unstable();
        assert_eq!(names, ["side", "work"], "those that ever had a task");
        assert_eq!(desk.inspector().broker().queues().await.unwrap(), ["side", "work"].map(queue_name));

        let said = desk.asynq.say("queue inspect work side").await.0;
        for (said, name) in said.split("=====\n").zip(["work", "side"]) {
            let (said, queue) = (Said(said.to_owned()), desk.queue(name).await);
            assert_eq!((said.value("Name"), said.value("Groups")), (name, "0"));
            assert_eq!((said.value("Size"), said.value("Paused")), (&*size(&queue).to_string(), "false"));
            assert_eq!(said.tables(), [[counts(&queue)], [day(queue.processed, queue.failed)]]);
        }
        let work = desk.queue("work").await;
        let all = [work.active, work.pending, work.scheduled, work.retry, work.archived, work.completed];
        assert_eq!((all, work.processed, work.failed), ([1; 6], 3, 2), "and these are no zeros");

        let said = desk.asynq.say("queue history work --days 3").await;
        let days = desk.inspector().history("work", 3).await.unwrap();
        let rows = days.iter().map(|of| {
            let mut row = day(of.processed, of.failed);
            row.insert("date (UTC)".to_owned(), of.date.clone());
            row
        });
        assert_eq!((said.value("Queue"), said.tables()), ("work", vec![rows.collect::<Vec<_>>()]));
        let unknown = desk.asynq.say("queue inspect nowhere").await.0;
        assert!(unknown.starts_with("error: ") && unknown.contains("nowhere"), "{unknown}");
        desk.close().await;
    })
    .await;
}

fn queue_name(name: &str) -> poolwright::core::QueueName {
    poolwright::core::QueueName::new(name).unwrap()
}

#[tokio::test]
async fn its_sums_are_those_of_our_queues() {
    let Some(desk) = Desk::open().await else { return };
    safely(async {
        desk.inspector().pause("side", "until the tide is in").await.unwrap();
        let (work, side) = (desk.queue("work").await, desk.queue("side").await);
        let said = desk.asynq.say("stats").await;
        let [by_state, by_queue, today, redis] = &said.tables()[..] else { panic!("{}", said.0) };
        let mut sums = counts(&work);
        sums.insert("pending".to_owned(), (work.pending + side.pending).to_string());
        assert_eq!(by_state[..], [sums]);
        let sizes = [("work", &*size(&work).to_string()), ("side (paused)", &*size(&side).to_string())];
        assert_eq!(by_queue[..], [row(sizes)]);
        assert_eq!(today[..], [day(work.processed, work.failed)]);
        assert!(!redis[0]["version"].is_empty(), "{redis:?}");

        let said = desk.asynq.say("stats --json").await.0;
        let said: Value = serde_json::from_str(&said).unwrap();
        let sum = |of: &str| said["aggregate"][of].as_u64().unwrap();
        assert_eq!((sum("pending"), sum("processed"), sum("failed")), (2, work.processed, work.failed));
        let queues = said["queues"].as_array().unwrap();
        assert_eq!(queues.len(), 2);
        for view in [work, side] {
            let shown = queues.iter().find(|queue| queue["Queue"] == view.name).unwrap();
            for (state, count) in counts(&view) {
                let name = state[..1].to_uppercase() + &state[1..];
                assert_eq!(shown[&name].to_string(), count, "{name} of {shown}");
            }
            assert_eq!((&shown["Size"], &shown["Paused"]), (&json!(size(&view)), &json!(view.paused)));
            assert_eq!(
                (&shown["Processed"], &shown["Failed"]),
                (&json!(view.processed), &json!(view.failed))
            );
            let totals = (&shown["ProcessedTotal"], &shown["FailedTotal"]);
            assert_eq!(totals, (&json!(view.processed_total), &json!(view.failed_total)));
            assert!(
                shown["MemoryUsage"].as_u64() > Some(0) && shown["Latency"].as_u64() > Some(0),
                "{shown}"
            );
        }
        desk.close().await;
    })
    .await;
}

/// What every list has of a task.
fn listed(task: &TaskRecord) -> Row {
    let payload = String::from_utf8(task.payload.to_vec()).unwrap();
    row([("ID", task.key.id.as_str()), ("Type", task.task_type.as_str()), ("Payload", &*payload)])
}

fn to_the_second(time: Option<Timestamp>) -> String {
    time.unwrap().to_string().split('.').next().unwrap().to_owned()
}

/// What asynq has of a due time: whole seconds, and nothing too early.
fn next_second(time: Timestamp) -> Timestamp {
    Timestamp::from_secs((time.as_micros() + 999_999).div_euclid(1_000_000))
}

#[tokio::test]
async fn it_lists_our_tasks_of_each_state_as_we_have_them() {
    let Some(desk) = Desk::open().await else { return };
    safely(async {
        for state in Is::ALL {
            let task = desk.task(state.as_str()).await;
            let from = now();
            let mut rows = desk.asynq.rows(&format!("task ls --queue work --state {state}")).await;
            let span = (from, now());
            assert_eq!(rows.len(), 1, "{rows:?}");
            let mut shown = rows.remove(0);
            let mut take =
                |head: &str| shown.remove(head).unwrap_or_else(|| panic!("{state} shows no {head}"));
            match state {
                Is::Pending | Is::Active => {}
                Is::Scheduled => {
                    assert!(is_left(seconds(&take("Process In")), span, task.due.unwrap()));
                }
                Is::Retry => {
                    assert!(is_left(seconds(&take("Next Retry")), span, task.due.unwrap()));
                    let failed = task.failed.clone().unwrap();
                    assert_eq!((take("Last Error"), take("Retried")), (failed.error.to_string(), "1".into()));
                    assert_eq!(rfc_3339(&take("Last Failed")), to_the_second(Some(failed.at)));
                    assert_eq!((take("Max Retry"), task.max_retry), ("7".to_owned(), 7));
                }
                Is::Archived => {
                    let failed = task.failed.clone().unwrap();
                    assert_eq!(take("Last Error"), *failed.error);
                    assert_eq!(rfc_3339(&take("Last Failed")), to_the_second(Some(failed.at)));
                }
                Is::Completed => {
                    assert_eq!(take("Result").as_bytes(), task.result.as_deref().unwrap());
                    assert_eq!(rfc_3339(&take("CompletedAt")), to_the_second(task.completed_at));
                }
            }
            assert_eq!(shown, listed(&task), "{state}");
        }
        desk.close().await;
    })
    .await;
}

#[tokio::test]
async fn it_turns_the_pages_of_our_queues_from_the_front() {
    let Some(desk) = Desk::open().await else { return };
    safely(async {
        let client = desk.app.client();
        for at in 1..5 {
            client.raw("part", b"\xff\x00".to_vec()).id(format!("p{at}")).send().await.unwrap();
        }
        let mut seen = Vec::new();
        for page in 1..=3 {
            let command = format!("task ls --queue work --state pending --size 2 --page {page}");
            seen.extend(desk.asynq.rows(&command).await);
        }
        let shown: Vec<_> = seen.iter().map(|row| row["ID"].clone()).collect();
        let mut ours = desk.ids(Is::Pending).await;
        ours.reverse();
        assert_eq!((shown.len(), shown), (5, ours), "ours come newest first");
        assert!(seen[4]["Payload"].contains("printable"), "bytes that are no text: {:?}", seen[4]);
        let beyond = desk.asynq.say("task ls --queue work --state pending --size 2 --page 4").await;
        assert!(beyond.tables().is_empty(), "{}", beyond.0);
        desk.inspector().delete_all("work", Is::Pending).await.unwrap();
        desk.close().await;
    })
    .await;
}

#[tokio::test]
async fn it_inspects_our_tasks_of_each_state() {
    let Some(desk) = Desk::open().await else { return };
    safely(async {
        for state in Is::ALL {
            let task = desk.task(state.as_str()).await;
            let from = now();
            let said = desk.asynq.say(&format!("task inspect --queue work --id {state}")).await;
            let span = (from, now());
            let id = task.key.id.as_str();
            assert_eq!((said.value("Queue"), said.value("ID"), said.value("State")), ("work", id, id));
            assert_eq!(said.value("Type"), task.task_type.as_str());
            assert_eq!(said.value("Retried"), format!("{}/{}", task.retried, task.max_retry));
            let next = said.value("Next process time");
            match task.due {
                Some(due) => {
                    let (moment, left) = next.split_once(" (").unwrap();
                    assert_eq!(rfc_3339(moment), to_the_second(Some(next_second(due))));
                    assert!(is_left(seconds(left), span, due), "{next}");
                }
                None => assert_eq!(next, if state == Is::Pending { "now" } else { "n/a" }),
            }
            match &task.failed {
                Some(failed) => {
                    assert_eq!(said.value("Error message"), &*failed.error);
                    assert_eq!(rfc_3339(said.value("Failed at")), to_the_second(Some(failed.at)));
                }
                None => assert!(!said.0.contains("Last Failure"), "{}", said.0),
            }
        }
        let nobody = desk.asynq.refuses("task inspect --queue work --id nobody").await;
        assert!(nobody.ends_with("not found"), "{nobody}");
        desk.close().await;
    })
    .await;
}

/// The servers that asynq would show for ours: each pool is one.
async fn servers(desk: &Desk) -> Vec<Row> {
    let servers = desk.inspector().servers().await.unwrap();
    let pools = servers.iter().flat_map(|server| server.pools.iter().map(move |pool| (server, pool)));
    let mut rows: Vec<_> = pools
        .map(|(server, pool)| {
            let mut queues = pool.queues.clone();
            queues.sort_by_key(|queue| (u32::MAX - queue.weight, queue.queue.clone()));
            let queues: Vec<_> =
                queues.iter().map(|queue| format!("{}:{}", queue.queue, queue.weight)).collect();
            let state = if server.status == "active" { "active" } else { "stopped" };
            row([
                ("Host", &*server.host),
                ("PID", &*server.pid.to_string()),
                ("State", state),
                ("Active Workers", &*format!("{}/{}", pool.busy, pool.workers)),
                ("Queues", &*queues.join(" ")),
            ])
        })
        .collect();
    rows.sort();
    rows
}

/// Waits until both sides say the same of our servers, and the worker of `main` is as busy as that.
async fn shown_servers(desk: &Desk, main: &str, state: &str) -> Vec<Row> {
    until("both see the same servers", async || {
        let mut shown = desk.asynq.rows("server ls").await;
        shown.sort();
        let bare = shown.iter().cloned().map(|mut row| {
            row.remove("Started");
            row
        });
        let is = bare.clone().any(|row| row["Active Workers"] == main && row["State"] == state);
        (is && bare.eq(servers(desk).await)).then_some(shown)
    })
    .await
}

#[tokio::test]
async fn it_shows_each_pool_of_ours_until_it_stops() {
    let Some(desk) = Desk::open().await else { return };
    safely(async {
        let from = now();
        let shown = shown_servers(&desk, "1/1", "active").await;
        let span = (from, now());
        let started = desk.inspector().servers().await.unwrap()[0].started_at;
        let pid = std::process::id().to_string();
        assert_eq!(shown.len(), 2, "{shown:?}");
        for (row, workers, queues) in [(&shown[0], "0/5", "rest:2"), (&shown[1], "1/1", "work:3 side:1")] {
            assert_eq!((&*row["Host"], &row["PID"]), (HOST, &pid));
            assert_eq!((&*row["Active Workers"], &*row["Queues"]), (workers, queues));
            assert!(is_left(-seconds(&row["Started"]), span, started), "{row:?}");
        }
        desk.app.stop();
        shown_servers(&desk, "1/1", "stopped").await;
        desk.play.stage.open_all();
        desk.app.wait().await;
        assert!(desk.asynq.say("server ls").await.tables().is_empty());
        desk.close().await;
    })
    .await;
}
