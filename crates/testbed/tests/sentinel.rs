//! Sentinels put a replica in the place of a killed primary, and the old one behind it.

#![cfg(unix)]

use poolwright_testbed::{Connection, Data, Error, RedisSentinels};

type Outcome = Result<(), Error>;

#[tokio::test]
async fn each_sentinel_names_the_primary() -> Outcome {
    let group = RedisSentinels::start().await?;
    assert_eq!((group.addresses().len(), group.servers().len()), (3, 2));
    for address in group.addresses() {
        let mut sentinel = Connection::tcp(address).await?;
        let named = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", group.master_name()];
        let named = sentinel.command(&named).await?;
        assert_eq!(named.items()[0], "127.0.0.1");
        assert_eq!(named.items()[1], group.primary().await?.port().to_string().as_str());
    }
    Ok(())
}

#[tokio::test]
async fn a_replica_takes_over_from_a_killed_primary() -> Outcome {
    let group = RedisSentinels::start_with(2).await?;
    let mut writer = group.primary().await?.connect().await?;
    writer.command(&["SET", "key", "value"]).await?;
    assert_eq!(writer.command(&["WAIT", "2", "0"]).await?, 2);
    let killed = group.kill_primary().await?;
    let promoted = group.until_failed_over(killed).await?;
    assert_ne!(promoted.port(), killed.port());
    assert_eq!(promoted.command(&["GET", "key"]).await?, "value");
    killed.restart(Data::Lost).await?;
    group.until_whole().await?;
    assert_eq!(group.primary().await?.port(), promoted.port());
    assert_eq!(killed.command(&["GET", "key"]).await?, "value");
    Ok(())
}
