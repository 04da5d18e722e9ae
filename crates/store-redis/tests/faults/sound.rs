//! The look at all keys sees what is wrong: each damage here is one that a fault could do, and is named.

use std::time::Duration;

use poolwright_conformance::builders::{archive, keep, task};

use crate::scene::Scene;
use crate::stage::keyspace::Keyspace;

/// A scene with one task in each state and all that hangs on tasks; nothing is wrong with it.
async fn furnished() -> Scene {
    let scene = Scene::new().await;
    let laden = |id: &str| task(id).unique(&format!("lock-{id}"), 3_600).subject("doc", "1").build();
    scene.settled(vec![laden("archived")], &archive()).await;
    scene.settled(vec![laden("completed")], &keep(600, b"r")).await;
    scene.enqueue(vec![laden("active")]).await;
    assert_eq!(scene.claim(1).await.len(), 1);
    let mut scheduled = laden("scheduled");
    scheduled.when = poolwright_core::When::After(Duration::from_secs(60));
    scene.enqueue(vec![scheduled, laden("pending")]).await;
    scene.assert_sound("nothing was done to it").await;
    scene
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_damage_is_named() {
    for (damage, named) in [
        ("LPUSH asynq:{q}:pending pending", "task pending should be in Some(\"pending\")"),
        ("LREM asynq:{q}:pending 0 pending", "task pending should be in"),
        ("ZADD asynq:{q}:retry 1 pending", "task pending should be in"),
        ("HSET asynq:{q}:t:scheduled state pending", "task scheduled should be in"),
        ("ZADD asynq:{q}:retry 1 ghost", "ghost is in [\"retry\"] and has no hash"),
        ("DEL asynq:{q}:t:archived", "archived is in [\"archived\"] and has no hash"),
        ("DEL asynq:{q}:lease", "active runs without a lease"),
        ("ZADD asynq:{q}:lease 1 pending", "pending has a lease and does not run"),
        ("ZADD asynq:{q}:lease 1 active", "is in lease by 1"),
        ("HSET asynq:{q}:t:ghost result r", "task ghost has no message"),
        ("HSET asynq:{q}:t:pending rubbish r", "field that nobody knows: rubbish"),
        ("HSET asynq:{q}:t:archived lease r", "is archived and has lease"),
        ("HDEL asynq:{q}:t:active lease", "is active and has no lease"),
        ("DEL asynq:{q}:claims", "active was claimed as number 3 of 0"),
        ("SET asynq:{q}:unique:free archived EX 60", "the lock free names archived, which does not hold it"),
        ("SET asynq:{q}:unique:free nobody EX 60", "the lock free names nobody, which is no task"),
        ("PERSIST asynq:{q}:unique:lock-pending", "unique:lock-pending does not go by itself"),
        ("EXPIRE asynq:{q}:t:pending 60", "t:pending goes by itself"),
        ("ZREM asynq:{q}:subject:doc/1 pending", "pending is missing in subject:doc/1"),
        ("ZADD asynq:{q}:scope:base/1 0 pending", "scope:base/1 names pending, which does not say so"),
        ("ZADD asynq:{q}:subject:doc/1 0 nobody", "subject:doc/1 names nobody"),
        ("ZADD asynq:{q}:quarantined 1 nobody", "nobody is set aside by half"),
        ("ZADD asynq:{q}:scheduled 1.5 scheduled", "no whole second, of scheduled"),
        ("SET asynq:{q}:paused_because 1", "no pause"),
        ("SET asynq:{q}:processed 1", "the days have 2 processed, and there were 1"),
        ("SET asynq:{q}:failed 7", "7 of 2 have failed"),
        ("SET asynq:{q}:rubbish 1", "nobody knows the key rubbish"),
        ("SREM asynq:queues q", "has tasks and is not registered"),
    ] {
        let scene = furnished().await;
        let words: Vec<&str> = damage.split(' ').collect();
        scene.server.command(&words).await.unwrap();
        let faults = Keyspace::of(&scene.server).await.faults();
        assert!(faults.iter().any(|fault| fault.contains(named)), "{damage}: {faults:#?}");
    }
}
