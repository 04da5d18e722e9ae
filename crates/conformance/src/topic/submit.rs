//! What an enqueue stores.

use std::time::Duration;

use poolwright_broker::{Enqueued, How, QueueStats};
use poolwright_core::{State, Timestamp};

use crate::Outcome;
use crate::builders::{QUEUE, key, queue, queues, secs, task};
use crate::observe::{assert_same, fresh};
use crate::stage::Stage;

pub(crate) async fn a_task_is_stored_as_it_was_given(s: Stage<'_>) -> Outcome {
    let given = task("a")
        .task_type("document:process")
        .payload(&b"{\"n\":1}"[..])
        .header("traceparent", "00-1-2-01")
        .header("empty", "")
        .max_retry(3)
        .timeout(Duration::from_millis(7_250))
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

pub(crate) async fn a_task_that_says_nothing_of_itself_is_stored_so(s: Stage<'_>) -> Outcome {
    let given = task("a").max_retry(0).timeout(secs(0)).build();
    s.enqueue(given.clone()).await?;
    assert_same(&s.the("a").await?, &fresh(&given, s.now()));
    Ok(())
}

pub(crate) async fn a_delayed_task_is_scheduled(s: Stage<'_>) -> Outcome {
    let by_delay = task("a").after(90).build();
    let outcome = s.enqueue(by_delay.clone()).await?;
    assert_eq!((outcome.state, outcome.how), (State::Scheduled, How::Stored));
    let seen = s.the("a").await?;
    s.assert_time(seen.due, s.now() + secs(90));
    let mut expected = fresh(&by_delay, s.now());
    expected.due = seen.due;
    assert_same(&seen, &expected);

    let time = s.now() + secs(5);
    assert_eq!(s.enqueue(task("b").at(time)).await?.state, State::Scheduled);
    s.assert_time(s.the("b").await?.due, time);
    Ok(())
}

pub(crate) async fn a_time_that_has_passed_means_at_once(s: Stage<'_>) -> Outcome {
    for (id, time) in [("a", s.now() - secs(5)), ("b", s.now()), ("c", Timestamp::EPOCH)] {
        assert_eq!(s.enqueue(task(id).at(time)).await?.state, State::Pending, "{id}");
    }
    assert_eq!(s.enqueue(task("d").after(0)).await?.state, State::Pending);
    assert_eq!(s.claim(9).await?.len(), 4);
    Ok(())
}

pub(crate) async fn the_same_id_in_two_queues_is_two_tasks(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a").payload("here")).await?;
    s.enqueue(task("a").queue("other").payload("there")).await?;
    assert_eq!(s.the("a").await?.payload, "here");
    assert_eq!(s.broker().get(key("other", "a")).await?.map(|task| task.payload), Some("there".into()));
    Ok(())
}

pub(crate) async fn a_queue_is_known_once_it_got_a_task(s: Stage<'_>) -> Outcome {
    assert!(s.broker().queues().await?.is_empty());
    s.broker().pause(queue("only-paused"), "no".into()).await?;
    s.enqueue(task("a").queue("z")).await?;
    s.enqueue(task("a").queue("m").after(60)).await?;
    s.enqueue(task("a").queue("a")).await?;
    assert_eq!(s.broker().queues().await?, queues(&["a", "m", "z"]));

    // An empty queue is a known one.
    s.broker().delete(key("m", "a")).await?;
    assert_eq!(s.broker().queues().await?, queues(&["a", "m", "z"]));
    Ok(())
}

pub(crate) async fn of_an_unknown_queue_everything_is_empty(s: Stage<'_>) -> Outcome {
    assert_eq!(s.stats().await?, QueueStats::empty(queue(QUEUE)));
    assert_eq!(s.find("a").await?, None);
    for state in State::ALL {
        let page = s.page(state, 10).await?;
        assert!(page.tasks.is_empty() && page.next.is_none(), "{state}");
    }
    assert!(s.claim(5).await?.is_empty());
    assert!(s.take_over().await?.is_empty());
    assert_eq!(s.promote().await?, poolwright_broker::Promoted::default());
    assert_eq!(s.sweep(0, secs(0), false).await?, poolwright_broker::Swept::default());
    Ok(())
}
