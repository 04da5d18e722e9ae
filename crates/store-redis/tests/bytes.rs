//! What a pending task costs the server's memory, compared with what asynq's own fields cost.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod stage;

use poolwright_broker::Submit;
use poolwright_core::{Chance, NewTask, QueueName, Subject, TaskId, TypeName};
use poolwright_store_redis::keys::Keys;
use poolwright_store_redis::wire::{TaskMessage, Wire};
use poolwright_testbed::RedisServer;
use stage::RedisHarness;

/// A power of two beyond which the server's tables have just grown would tell of the tables.
const TASKS: u64 = 30_000;

fn id(chance: &Chance) -> String {
    let b = chance.bytes::<16>().map(|byte| format!("{byte:02x}")).concat();
    format!("{}-{}-4{}-8{}-{}", &b[..8], &b[8..12], &b[13..16], &b[17..20], &b[20..])
}

fn payload() -> Vec<u8> {
    vec![b'x'; 100]
}

async fn used(server: &RedisServer) -> i64 {
    let info = server.command(&["INFO", "memory"]).await.unwrap();
    info.line("used_memory").unwrap().parse().unwrap()
}

/// Bytes a task that asynq's client would need: the three fields of its hash, and its place in the list.
async fn asynq_bytes() -> f64 {
    let server = RedisServer::start().await.unwrap();
    let (chance, queue) = (Chance::seeded(1), QueueName::new("default").unwrap());
    let keys = Keys::of(&queue);
    let mut connection = server.connect().await.unwrap();
    let before = used(&server).await;
    for _ in 0..TASKS {
        let id = id(&chance);
        let message = TaskMessage {
            task_type: "email:send".into(),
            payload: payload().into(),
            id: id.clone(),
            queue: "default".into(),
            retry: 25,
            timeout: 1_800,
            ..TaskMessage::default()
        };
        let hash = keys.task(&TaskId::new(&id).unwrap());
        let fields: [&[u8]; 8] = [
            b"HSET",
            hash.as_bytes(),
            b"msg",
            &message.to_bytes(),
            b"state",
            b"pending",
            b"pending_since",
            b"1900000000123457000",
        ];
        connection.command(&fields).await.unwrap();
        connection.command(&["LPUSH", &keys.pending(), &id]).await.unwrap();
    }
    per_task(before, used(&server).await)
}

#[allow(clippy::cast_precision_loss, reason = "some megabytes")]
fn per_task(before: i64, after: i64) -> f64 {
    (after - before) as f64 / TASKS as f64
}

/// Bytes a task of ours, with as many tasks to a subject; none without subjects.
async fn our_bytes(tasks_a_subject: Option<u64>) -> f64 {
    let harness = RedisHarness::new(1).await;
    let (chance, store) = (Chance::seeded(1), harness.store());
    let server = harness.servers().single();
    let before = used(server).await;
    let mut batch = Vec::new();
    for nth in 0..TASKS {
        let (queue, id) = (QueueName::new("default").unwrap(), TaskId::new(id(&chance)).unwrap());
        let mut task = NewTask::new(queue, id, TypeName::new("email:send").unwrap(), payload());
        if let Some(many) = tasks_a_subject {
            task.subjects.push(Subject::new("knowledge", format!("kn_{:06}", nth / many)));
        }
        batch.push(task);
        if batch.len() == 500 {
            store.enqueue(std::mem::take(&mut batch)).await.unwrap();
        }
    }
    store.enqueue(batch).await.unwrap();
    per_task(before, used(server).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pending_task_costs_what_asynqs_costs_and_its_subject_little() {
    let asynq = asynq_bytes().await;
    let (plain, own, shared) = (our_bytes(None).await, our_bytes(Some(1)).await, our_bytes(Some(50)).await);
    println!("asynq {asynq:.0}, plain {plain:.0}, own subject {own:.0}, 50 a subject {shared:.0}");
    assert!(plain <= asynq * 1.01, "{plain} for {asynq}");
    assert!(own <= asynq * 1.30, "{own} for {asynq}");
    assert!(shared <= asynq * 1.12, "{shared} for {asynq}");
}
