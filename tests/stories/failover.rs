//! A primary dies in the middle of a drain: what its replica had is worked off, nothing is stuck.
//!
//! What was acknowledged and not yet replicated is lost with a primary; so the tasks are on the replicas before it dies. Results
//! may be lost, and then a task runs again.

use acceptance::impatient;
use acceptance::place::{Place, Sums, send_many, sums};
use acceptance::safely;
use acceptance::stage::{Part, Play};
use poolwright_testbed::{RedisCluster, RedisSentinels, RedisServer, until};

const TASKS: usize = 2_000;

const QUEUES: &str = r#"
[runtime]
lease = "1s"

[pools.main]
workers = 20
queues = { work = 1 }

[tasks.work]
queue = "work"
max_crashes = 50
"#;

/// Waits until all replicas of this primary have everything: whichever is promoted has it.
async fn replicated(primary: &RedisServer) {
    let mut connection = primary.connect().await.unwrap();
    loop {
        let info = connection.command(&["INFO", "replication"]).await.unwrap();
        let replicas: i64 = info.line("connected_slaves").unwrap().parse().unwrap();
        // WAIT speaks of the writes of its own connection, and of all that came before them.
        connection.command(&["SET", "{work}mark", "1"]).await.unwrap();
        let reached = connection.command(&["WAIT", &replicas.to_string(), "1000"]).await.unwrap();
        if replicas > 0 && reached.integer() >= Some(replicas) {
            return;
        }
    }
}

/// Works the queue off, with a kill of its primary in the middle.
async fn drain(place: &Place, kill: impl AsyncFnOnce()) {
    let play = Play::new();
    let app = place.playing(&play.stage, &["work"]).tune(impatient).start().await.unwrap();
    play.journal.until(|log| log.start_count() > TASKS / 4).await;
    kill().await;
    let inspector = place.inspector().await;
    until("the queue to be worked off", async || {
        let now: Sums = inspector.queue("work").await.map_err(|error| error.to_string())?.into();
        if (now.pending, now.active, now.later) == (0, 0, 0) { Ok(()) } else { Err(format!("{now:?}")) }
    })
    .await
    .unwrap();
    let sums = sums(&inspector, "work").await;
    assert_eq!((sums.archived, sums.completed), (0, 0));
    assert_eq!(play.journal.look(|log| log.started_tasks()), TASKS, "each task ran");
    app.shutdown().await.unwrap();
}

#[tokio::test]
async fn sentinels_promote_a_replica_in_the_middle_of_a_drain() {
    safely(async {
        let sentinels = RedisSentinels::start().await.unwrap();
        let seeds: Vec<_> = sentinels.addresses().iter().map(ToString::to_string).collect();
        let url = format!("redis-sentinel://{}/0?master={}", seeds.join(","), sentinels.master_name());
        let place = Place::reaching(QUEUES, url);
        send_many(&place.client().await, "work", "t", TASKS, |_| Part::Ok).await;
        replicated(sentinels.primary().await.unwrap()).await;
        drain(&place, async || {
            let old = sentinels.kill_primary().await.unwrap();
            sentinels.until_failed_over(old).await.unwrap();
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_cluster_promotes_a_replica_in_the_middle_of_a_drain() {
    safely(async {
        let cluster = RedisCluster::start().await.unwrap();
        let seeds: Vec<_> = cluster.nodes().iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
        let place = Place::reaching(QUEUES, format!("redis-cluster://{}", seeds.join(",")));
        send_many(&place.client().await, "work", "t", TASKS, |_| Part::Ok).await;
        replicated(cluster.owner("{work}").await.unwrap()).await;
        drain(&place, async || {
            let old = cluster.kill_owner("{work}").await.unwrap();
            cluster.until_failed_over("{work}", old).await.unwrap();
        })
        .await;
    })
    .await;
}
