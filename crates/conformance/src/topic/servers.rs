//! The records of worker processes.

use poolwright_broker::{PoolBeat, RunningTask, ServerBeat, ServerId, WeightedQueue};
use poolwright_core::{PoolName, Timestamp, TypeName};

use crate::Outcome;
use crate::builders::{QUEUE, key, queue, secs};
use crate::stage::Stage;

fn beat(id: &str, busy: u32) -> ServerBeat {
    ServerBeat {
        id: ServerId(id.into()),
        host: "höst".into(),
        pid: 4_294_967_295,
        started_at: Timestamp::from_micros(1_700_000_000_000_001),
        beat_at: Timestamp::EPOCH,
        stopping: busy == 0,
        pools: vec![PoolBeat {
            pool: PoolName::new("core").expect("is a name"),
            workers: 8,
            busy,
            stalled: 1,
            queues: vec![WeightedQueue { queue: queue(QUEUE), weight: 3 }],
        }],
        tasks: vec![RunningTask {
            key: key(QUEUE, "a"),
            task_type: TypeName::new("x:y").expect("is a name"),
            pool: PoolName::new("core").expect("is a name"),
            started_at: Timestamp::from_micros(1_800_000_000_000_001),
            stalled: true,
        }],
    }
}

async fn ids(s: &Stage<'_>) -> Result<Vec<String>, poolwright_broker::Error> {
    Ok(s.broker().servers().await?.into_iter().map(|server| server.id.0).collect())
}

pub(crate) async fn a_heartbeat_is_shown_as_it_was_said_with_the_stores_time(s: Stage<'_>) -> Outcome {
    let said = beat("h:1:x", 3);
    s.broker().beat(said.clone(), secs(10)).await?;
    let expected = ServerBeat { beat_at: s.now(), ..said };
    assert_eq!(s.broker().servers().await?, [expected]);
    Ok(())
}

pub(crate) async fn servers_come_by_id(s: Stage<'_>) -> Outcome {
    for id in ["c", "a", "b", "B"] {
        s.broker().beat(beat(id, 1), secs(10)).await?;
    }
    assert_eq!(ids(&s).await?, ["B", "a", "b", "c"]);
    Ok(())
}

pub(crate) async fn a_later_heartbeat_takes_the_place_of_the_earlier(s: Stage<'_>) -> Outcome {
    s.broker().beat(beat("a", 3), secs(10)).await?;
    s.elapse(6).await;
    s.broker().beat(beat("a", 0), secs(10)).await?;
    s.elapse(6).await;
    let servers = s.broker().servers().await?;
    assert_eq!(servers.len(), 1, "it lasts from the later one");
    assert!(servers[0].stopping && servers[0].pools[0].busy == 0);
    Ok(())
}

pub(crate) async fn a_record_expires_when_its_time_is_over_and_not_before(s: Stage<'_>) -> Outcome {
    s.broker().beat(beat("a", 1), secs(10)).await?;
    s.broker().beat(beat("b", 1), secs(20)).await?;
    s.elapse(9).await;
    assert_eq!(ids(&s).await?, ["a", "b"]);
    s.elapse(1).await;
    assert_eq!(ids(&s).await?, ["b"]);
    s.broker().beat(beat("a", 1), secs(10)).await?;
    assert_eq!(ids(&s).await?, ["a", "b"], "it came back");
    Ok(())
}

pub(crate) async fn a_retired_server_is_gone_at_once(s: Stage<'_>) -> Outcome {
    s.broker().beat(beat("a", 1), secs(10)).await?;
    s.broker().beat(beat("b", 1), secs(10)).await?;
    s.broker().retire(ServerId("a".into())).await?;
    s.broker().retire(ServerId("a".into())).await?;
    s.broker().retire(ServerId("never was".into())).await?;
    assert_eq!(ids(&s).await?, ["b"]);
    Ok(())
}
