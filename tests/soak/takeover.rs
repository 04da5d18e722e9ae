//! With the lease that everybody has who sets none: how long a task waits after `kill -9` of its worker.

use acceptance::crew::Crew;
use acceptance::place::{Place, Sums, send, sums};
use acceptance::stage::Part;

use crate::{WORKER, now, patiently, secs_since};

const DEATHS: usize = 6;
const SECS_MAX: f64 = 11.0;

const QUEUES: &str = r#"
[pools.main]
workers = 1
queues = { work = 1 }

[tasks.work]
queue = "work"
max_retry = 0
"#;

#[tokio::test]
async fn soak_takeover_with_the_default_lease() {
    takeover("takeover", Place::new(QUEUES)).await;
}

#[tokio::test]
async fn soak_redis_takeover_with_the_default_lease() {
    takeover("takeover on redis", Place::on_redis(QUEUES)).await;
}

async fn takeover(name: &str, place: Place) {
    patiently(async {
        let crew = Crew::new(WORKER, &place);
        let client = place.client().await;
        let mut workers = vec![crew.worker().await, crew.worker().await];
        let mut waits = Vec::new();
        for death in 0..DEATHS {
            let id = format!("t{death}");
            send(&client, "work", &id, Part::Wait).await;
            crew.journal.until(|log| log.starts_of(&id) == 1).await;
            let pid_of = |nth: usize| {
                crew.journal.look(|log| log.starts().filter(|start| start.id == id).nth(nth).unwrap().pid)
            };
            let at = workers.iter().position(|worker| worker.pid == pid_of(0)).unwrap();
            let victim = workers.swap_remove(at);
            let killed_at = now();
            victim.kill().await;
            crew.journal.until(|log| log.starts_of(&id) == 2).await;
            let waited = secs_since(killed_at);
            assert_eq!(pid_of(1), workers[0].pid);
            assert!(waited <= SECS_MAX, "{waited:.2} s until somebody else went on");
            waits.push(waited);
            workers[0].open(&id).await;
            workers.push(crew.worker().await);
        }
        let inspector = place.inspector().await;
        let all = DEATHS as u64;
        crew.journal.until_asked(async || sums(&inspector, "work").await.processed == all).await;
        assert_eq!(sums(&inspector, "work").await, Sums { processed: all, ..Sums::default() });
        let longest = waits.iter().copied().fold(0.0, f64::max);
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        println!("figures: {name} deaths={DEATHS} longest_secs={longest:.2} mean_secs={mean:.2}");
    })
    .await;
}
