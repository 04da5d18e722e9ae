//! A cluster routes, loses a primary, and takes it back as a replica.

#![cfg(unix)]

use poolwright_testbed::{Data, Error, Options, RedisCluster};

type Outcome = Result<(), Error>;

#[tokio::test]
async fn every_key_has_an_owner_that_takes_it() -> Outcome {
    let cluster = RedisCluster::start_with(Options::default().password("secret")).await?;
    assert_eq!(cluster.urls().iter().filter(|url| url.starts_with("redis://:secret@127.0.0.1:")).count(), 6);
    let mut owners = Vec::new();
    for key in ["asynq:{critical}:pending", "asynq:{default}:pending", "asynq:{low}:pending", "a", "b", "c"] {
        // A node that is not the owner answers with an error.
        assert_eq!(cluster.command(key, &["SET", key, "value"]).await?, "OK");
        owners.push(cluster.owner(key).await?.port());
    }
    owners.sort_unstable();
    owners.dedup();
    assert!(owners.len() > 1, "the keys lie on more than one node");
    Ok(())
}

#[tokio::test]
async fn a_replica_takes_over_from_a_killed_primary_and_keeps_its_keys() -> Outcome {
    let (cluster, key) = (RedisCluster::start().await?, "asynq:{low}:pending");
    let owner = cluster.owner(key).await?;
    owner.command(&["SET", key, "value"]).await?;
    // The replica has it before its primary dies.
    let mut writer = owner.connect().await?;
    writer.command(&["SET", key, "newer"]).await?;
    assert_eq!(writer.command(&["WAIT", "1", "0"]).await?, 1);
    let killed = cluster.kill_owner(key).await?;
    assert_eq!(killed.port(), owner.port());
    let promoted = cluster.until_failed_over(key, killed).await?;
    assert_ne!(promoted.port(), killed.port());
    assert_eq!(cluster.command(key, &["GET", key]).await?, "newer");
    killed.restart(Data::Lost).await?;
    cluster.until_whole().await?;
    assert_eq!(cluster.owner(key).await?.port(), promoted.port());
    let mut reader = killed.connect().await?;
    reader.command(&["READONLY"]).await?;
    assert_eq!(reader.command(&["GET", key]).await?, "newer");
    Ok(())
}
