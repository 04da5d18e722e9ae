//! asynqmon, the dashboard that people run beside asynq, shows what is ours.

use std::time::Duration;

use poolwright_broker::{Inspect, PoolBeat, RunningTask, ServerBeat, ServerId, Upkeep, WeightedQueue};
use poolwright_core::{Charge, Class, PoolName, Settlement, State, TaskRecord, Timestamp, When};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::both::{Both, MINUTE, queue, task, until};
use crate::go::{Heard, Process};

/// The dashboard, at a port of its own.
struct Mon {
    address: String,
    _process: Process,
}

impl Mon {
    async fn start(both: &Both) -> Self {
        let heard = Heard::default();
        let process = both.go.process(&heard, "mon", &["--until-eof"]).await;
        let ready = heard.line(|line| line["event"] == "ready").await;
        Self { address: ready["address"].as_str().unwrap().to_owned(), _process: process }
    }

    /// The status and the body of an answer of its API.
    async fn ask(&self, method: &str, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let request = format!("{method} /api/{path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    async fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask("GET", path).await;
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }
}

/// One of our tasks in each state, named for it.
async fn in_each_state(both: &Both) {
    let kept = |id: &str| {
        let mut task = task(id, &format!("of {id}"));
        task.retention = MINUTE;
        task
    };
    both.send(["active", "retry", "archived", "completed"].map(kept).to_vec()).await;
    let error = || "boom".to_owned();
    for task in both.claim("q", 4).await {
        let end = match task.key.id.as_str() {
            "retry" => {
                let charge = Charge::Retry;
                Settlement::Retry { after: MINUTE, error: error(), class: Class::Transient, charge }
            }
            "archived" => Settlement::Archive { error: error(), class: Class::Permanent },
            "completed" => Settlement::Complete { retain_for: MINUTE, result: Some("result".into()) },
            _ => continue,
        };
        both.end(&task, end).await;
    }
    let mut scheduled = kept("scheduled");
    scheduled.when = When::After(MINUTE);
    both.send(vec![scheduled, kept("pending")]).await;
}

#[tokio::test]
async fn it_shows_our_queues_and_each_task() {
    let Some(both) = Both::start().await else { return };
    in_each_state(&both).await;
    let mon = Mon::start(&both).await;
    let queues = mon.get("queues").await;
    let shown = &queues["queues"][0];
    assert_eq!((&shown["queue"], &shown["size"]), (&json!("q"), &json!(6)), "{queues}");
    assert_eq!(
        (&shown["processed"], &shown["failed"], &shown["paused"]),
        (&json!(3), &json!(2), &json!(false))
    );
    for state in State::ALL {
        assert_eq!(shown[state.as_str()], 1, "{shown}");
        let listed = mon.get(&format!("queues/q/{state}_tasks")).await;
        let listed = &listed["tasks"];
        assert_eq!((listed.as_array().unwrap().len(), &listed[0]["id"]), (1, &json!(state)), "{listed}");
        let task = mon.get(&format!("queues/q/tasks/{state}")).await;
        assert_eq!((&task["id"], &task["state"]), (&json!(state), &json!(state)));
        assert_eq!((&task["payload"], &task["queue"]), (&json!(format!("of {state}")), &json!("q")));
        assert_eq!((&task["type"], &task["timeout_seconds"]), (&json!("t"), &json!(1_800)), "{task}");
    }
    assert_eq!(mon.get("queues/q/tasks/completed").await["result"], "result");
    assert_eq!(mon.get("queues/q/tasks/archived").await["error_message"], "boom");
    let one = mon.get("queues/q").await;
    assert_eq!(one["current"]["size"], 6, "{one}");
    let days = mon.get("queue_stats").await;
    assert_eq!(days["stats"]["q"][0]["processed"], 3, "{days}");
    assert_eq!(mon.get("queues/q/groups").await["groups"], json!([]));
    mon.get("redis_info").await;
    assert_eq!(mon.ask("GET", "queues/q/tasks/nobody").await.0, 404);
}

#[tokio::test]
async fn it_pauses_resumes_and_removes_our_queues() {
    let Some(both) = Both::start().await else { return };
    in_each_state(&both).await;
    let mon = Mon::start(&both).await;
    assert_eq!(mon.ask("POST", "queues/q:pause").await.0, 204);
    assert!(both.stats("q").await.paused.is_some());
    assert_eq!(mon.get("queues").await["queues"][0]["paused"], true);
    assert_eq!(mon.ask("POST", "queues/q:resume").await.0, 204);
    assert!(both.stats("q").await.paused.is_none());
    both.store.pause(queue("q"), "ours".into()).await.unwrap();
    assert_eq!(mon.ask("POST", "queues/q:resume").await.0, 204);
    assert!(both.stats("q").await.paused.is_none());

    assert_eq!(mon.ask("POST", "queues/q/scheduled_tasks/scheduled:run").await.0, 204);
    assert_eq!(both.task("scheduled").await.state, State::Pending);
    assert_eq!(mon.ask("POST", "queues/q/retry_tasks/retry:archive").await.0, 204);
    assert_eq!(both.task("retry").await.state, State::Archived);
    assert_eq!(mon.ask("DELETE", "queues/q/archived_tasks:delete_all").await.0, 200);
    assert_eq!(both.stats("q").await.archived, 0);
    assert_eq!(mon.ask("POST", "queues/q/active_tasks/active:cancel").await.0, 204);
    assert_eq!(mon.ask("DELETE", "queues/q").await.0, 400, "it has tasks");
}

/// A heartbeat of a process with two pools, one of which runs this task.
fn beat(running: &TaskRecord) -> ServerBeat {
    let weighted = |name: &str, weight| WeightedQueue { queue: queue(name), weight };
    let pool = |name: &str, workers, busy, queues| PoolBeat {
        pool: PoolName::new(name).unwrap(),
        workers,
        busy,
        stalled: 0,
        queues,
    };
    let started_at = running.started_at.unwrap();
    ServerBeat {
        id: ServerId("host1:4242:abc".to_owned()),
        host: "host1".to_owned(),
        pid: 4_242,
        started_at,
        beat_at: Timestamp::EPOCH,
        stopping: false,
        pools: vec![
            pool("core", 8, 1, vec![weighted("q", 3), weighted("low", 1)]),
            pool("side", 2, 0, vec![weighted("low", 1)]),
        ],
        tasks: vec![RunningTask {
            key: running.key.clone(),
            task_type: running.task_type.clone(),
            pool: PoolName::new("core").unwrap(),
            started_at,
            stalled: false,
        }],
    }
}

fn by_concurrency(servers: &Value, concurrency: u64) -> &Value {
    let all = servers["servers"].as_array().unwrap();
    all.iter().find(|server| server["concurrency"] == concurrency).unwrap()
}

#[tokio::test]
async fn it_shows_each_pool_of_ours_as_a_server_with_what_it_runs() {
    let Some(both) = Both::start().await else { return };
    in_each_state(&both).await;
    let running = both.task("active").await;
    both.store.beat(beat(&running), MINUTE).await.unwrap();
    let mon = Mon::start(&both).await;
    let servers = mon.get("servers").await;
    assert_eq!(servers["servers"].as_array().unwrap().len(), 2, "{servers}");
    let (core, side) = (by_concurrency(&servers, 8), by_concurrency(&servers, 2));
    for server in [core, side] {
        assert_eq!((&server["host"], &server["pid"]), (&json!("host1"), &json!(4_242)));
        assert_eq!(
            (&server["status"], &server["strict_priority_enabled"]),
            (&json!("active"), &json!(false))
        );
    }
    assert_eq!(core["queue_priorities"], json!({"q": 3, "low": 1}));
    assert_eq!((&side["queue_priorities"], &side["active_workers"]), (&json!({"low": 1}), &json!([])));
    let worker = &core["active_workers"][0];
    assert_eq!((&worker["task_id"], &worker["queue"]), (&json!("active"), &json!("q")));
    assert_eq!((&worker["task_type"], &worker["task_payload"]), (&json!("t"), &json!("of active")));
    let active = mon.get("queues/q/active_tasks").await;
    let shown = &active["tasks"][0];
    assert_eq!(shown["start_time"], worker["start_time"], "{active}");
    assert!(
        shown["deadline"].as_str().is_some_and(|deadline| deadline > shown["start_time"].as_str().unwrap())
    );
    assert_eq!(shown["is_orphaned"], false);

    // The inspector of the newest asynq says the same.
    let mut inspector = both.go.inspector();
    let seen = inspector.get(json!({"op": "servers"})).await;
    assert_eq!((seen.as_array().unwrap().len(), &seen[0]["workers"][0]["id"]), (2, &json!("active")));
    both.store.retire(ServerId("host1:4242:abc".to_owned())).await.unwrap();
    assert_eq!(mon.get("servers").await["servers"], json!([]));
    assert!(!both.keys().await.iter().any(|key| key.contains("servers") || key.contains("workers")));
}

/// A worker of ours that stops is shown as one that stops; a record whose time is over is not shown.
#[tokio::test]
async fn it_shows_when_we_stop_and_when_we_are_gone() {
    let Some(both) = Both::start().await else { return };
    in_each_state(&both).await;
    let mut stopping = beat(&both.task("active").await);
    stopping.stopping = true;
    both.store.beat(stopping, Duration::from_secs(1)).await.unwrap();
    let mon = Mon::start(&both).await;
    assert_eq!(mon.get("servers").await["servers"][0]["status"], "stopped");
    let gone = async || (mon.get("servers").await["servers"] == json!([])).then_some(());
    until("a record that has expired", gone).await;
    assert!(both.store.servers().await.unwrap().is_empty());
}

/// What enqueues by the clock: its entries stand beside our data.
#[tokio::test]
async fn it_shows_schedulers_beside_us() {
    let Some(both) = Both::start().await else { return };
    in_each_state(&both).await;
    let heard = Heard::default();
    let mut scheduler = both.go.process(&heard, "schedule", &["--heartbeat", "50ms"]).await;
    let tick = json!({"type": "tick", "payload": "p", "queue": "q"});
    scheduler.say(json!({"spec": "@every 1s", "task": tick})).await;
    let entry = heard.line(|line| line["event"] == "registered").await["entry"].clone();
    let mon = Mon::start(&both).await;
    let entries = async || mon.get("scheduler_entries").await["entries"].get(0).cloned();
    let shown = until("an entry", entries).await;
    assert_eq!(
        (&shown["id"], &shown["task_type"], &shown["spec"]),
        (&entry, &json!("tick"), &json!("@every 1s"))
    );
    let fired = heard.line(|line| line["event"] == "enqueued").await;
    let path = format!("scheduler_entries/{}/enqueue_events", entry.as_str().unwrap());
    let events = async || mon.get(&path).await["events"].get(0).cloned();
    assert_eq!(until("an event", events).await["task_id"], fired["task"]["id"]);
    let id = fired["task"]["id"].as_str().unwrap();
    let ours = both.task(id).await;
    assert_eq!((ours.task_type.as_str(), &ours.payload[..], ours.state), ("tick", &b"p"[..], State::Pending));
}
