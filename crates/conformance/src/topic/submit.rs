//! What an enqueue stores.

use poolwright_broker::{Enqueued, How};
use poolwright_core::{State, Timestamp};

use crate::Outcome;
use crate::builders::{QUEUE, key, secs, task};
use crate::observe::{assert_same, fresh};
use crate::stage::Stage;

pub(crate) async fn a_task_is_stored_as_it_was_given(s: Stage<'_>) -> Outcome {
    let given = task("a")
        .task_type("document:process")
        .payload(&b"{\"n\":1}"[..])
        .header("traceparent", "00-1-2-01")
        .header("empty", "")
        .max_retry(3)
        .timeout(secs(7))
        .deadline(Timestamp::from_micros(2_000_000_000_000_001))
        .retention(60)
        .unique("lock", 90)
        .subject("knowledge", "kn_1")
        .subject("knowledge", "kn_2")
        .scope("knowledge_base", "kb_1")
        .tenant("t1")
        .build();
    let outcome = s.enqueue(given.clone()).await?;
    assert_eq!(outcome, Enqueued { key: key(QUEUE, "a"), state: State::Pending, how: How::Stored });
    assert_same(&s.the("a").await?, &fresh(&given, s.now()));
    Ok(())
}

pub(crate) async fn every_new_task_starts_from_zero(s: Stage<'_>) -> Outcome {
    let given = task("a").build();
    s.enqueue(given.clone()).await?;
    assert_same(&s.the("a").await?, &fresh(&given, s.now()));
    Ok(())
}
