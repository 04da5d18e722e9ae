//! Numbers: tasks by state, ended attempts by day and in total.

use poolwright_broker::{DayStats, HISTORY_DAYS_MAX, QueueStats};
use poolwright_core::{Charge, Class, Settlement, State};

use crate::Outcome;
use crate::builders::{QUEUE, archive, complete, hold, keep, key, queue, retry, retry_as, task};
use crate::stage::{STATES, Stage};

/// `processed` and `failed`, today and ever.
const fn ended(stats: &QueueStats) -> [u64; 4] {
    [stats.processed_today, stats.failed_today, stats.processed, stats.failed]
}

const DAY_SECS: u64 = 86_400;

pub(crate) async fn every_state_is_counted(s: Stage<'_>) -> Outcome {
    for (count, state) in STATES.into_iter().enumerate() {
        for n in 0..=count {
            // One task after another, so that the pending ones of this queue come last.
            s.reach(state, task(&format!("{state}{n}"))).await?;
        }
    }
    let stats = s.stats().await?;
    for (count, state) in STATES.into_iter().enumerate() {
        assert_eq!(stats.count(state), count as u64 + 1, "{state}");
    }
    assert_eq!(stats.size(), 21 - stats.completed);
    assert_eq!(stats.queue, QUEUE);
    Ok(())
}

pub(crate) async fn settlements_are_counted_as_processed_and_failed(s: Stage<'_>) -> Outcome {
    let mut expected = [0, 0];
    for (id, settlement, processed, failed) in [
        ("complete", complete(), 1, 0),
        ("keep", keep(600, b""), 1, 0),
        ("discard", Settlement::Discard, 1, 0),
        ("archive", archive(), 1, 1),
        ("retry later", retry(60), 1, 1),
        ("deferral", retry_as(60, Class::RateLimited, Charge::Deferral), 0, 0),
        ("crash", retry_as(60, Class::Crashed, Charge::Crash), 0, 0),
        ("nothing", retry_as(60, Class::NoHandler, Charge::Nothing), 0, 0),
        ("release", Settlement::Release, 0, 0),
    ] {
        s.settled(task(id), settlement).await?;
        expected = [expected[0] + processed, expected[1] + failed];
        let [processed, failed] = expected;
        assert_eq!(ended(&s.stats().await?), [processed, failed, processed, failed], "{id}");
        if s.state(id).await? == Some(State::Pending) {
            s.broker().delete(key(QUEUE, id)).await?;
        }
    }
    s.settled(task("at once"), retry(0)).await?;
    assert_eq!(ended(&s.stats().await?), [6, 3, 6, 3]);
    let taken = s.take().await?;
    s.settle(&taken, hold("no")).await?;
    assert_eq!(ended(&s.stats().await?), [6, 3, 6, 3], "a hold counts nothing");
    Ok(())
}

pub(crate) async fn refused_settlements_count_nothing(s: Stage<'_>) -> Outcome {
    let taken = s.running(task("a")).await?;
    s.elapse(60).await;
    s.take_over().await?;
    assert!(s.settle(&taken, archive()).await.is_err());
    assert_eq!(ended(&s.stats().await?), [0; 4]);
    Ok(())
}

pub(crate) async fn what_an_operator_does_is_not_counted(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a")).await?;
    s.broker().archive(key(QUEUE, "a"), "no".into()).await?;
    s.broker().run_now(key(QUEUE, "a")).await?;
    s.broker().delete(key(QUEUE, "a")).await?;
    s.enqueue(task("b")).await?;
    s.broker().request_cancel(vec![key(QUEUE, "b")]).await?;
    s.claim(1).await?;
    s.elapse(60).await;
    s.take_over().await?;
    assert_eq!(ended(&s.stats().await?), [0; 4]);
    assert_eq!(s.broker().history(queue(QUEUE), 1).await?.first().map(|day| day.processed), Some(0));
    Ok(())
}

pub(crate) async fn history_goes_by_day_today_first(s: Stage<'_>) -> Outcome {
    let first = s.now().day();
    s.settled(task("a"), complete()).await?;
    s.settled(task("b"), archive()).await?;
    s.elapse(2 * DAY_SECS).await;
    s.settled(task("c"), retry(60)).await?;
    let history = s.broker().history(queue(QUEUE), 4).await?;
    let day = |day, processed, failed| DayStats { day, processed, failed };
    let expected = [day(first + 2, 1, 1), day(first + 1, 0, 0), day(first, 2, 1), day(first - 1, 0, 0)];
    assert_eq!(history, expected);
    assert_eq!(ended(&s.stats().await?), [1, 1, 3, 2]);
    assert_eq!(s.broker().history(queue(QUEUE), 1).await?, expected[..1]);
    assert_eq!(s.broker().history(queue(QUEUE), 0).await?, []);
    Ok(())
}

pub(crate) async fn a_day_begins_at_midnight_utc(s: Stage<'_>) -> Outcome {
    let left = DAY_SECS - s.now().as_secs().rem_euclid(86_400).unsigned_abs();
    s.elapse(left - 1).await;
    let before = s.now().day();
    s.settled(task("a"), complete()).await?;
    s.elapse(1).await;
    assert_eq!(s.now().day(), before + 1, "the clock of this harness stands at midnight");
    assert_eq!(ended(&s.stats().await?), [0, 0, 1, 0]);
    s.settled(task("b"), complete()).await?;
    let days: Vec<_> = s.broker().history(queue(QUEUE), 2).await?.iter().map(|day| day.processed).collect();
    assert_eq!(days, [1, 1]);
    Ok(())
}

pub(crate) async fn a_history_has_its_longest_length(s: Stage<'_>) -> Outcome {
    s.settled(task("a"), complete()).await?;
    let days = s.broker().history(queue(QUEUE), u32::MAX).await?;
    assert_eq!(days.len(), HISTORY_DAYS_MAX as usize);
    assert_eq!(days.iter().map(|day| day.processed).sum::<u64>(), 1);
    let unknown = s.broker().history(queue("unknown"), 2).await?;
    let today = s.now().day();
    assert_eq!(
        unknown.iter().map(|day| (day.day, day.processed)).collect::<Vec<_>>(),
        [(today, 0), (today - 1, 0)]
    );
    Ok(())
}

pub(crate) async fn the_oldest_pending_task_says_since_when_it_waits(s: Stage<'_>) -> Outcome {
    assert_eq!(s.stats().await?.oldest_pending, None);
    s.enqueue(task("a")).await?;
    let first = s.now();
    s.elapse(5).await;
    s.enqueue(task("b")).await?;
    let second = s.now();
    assert_eq!(s.stats().await?.oldest_pending, Some(first));
    let taken = s.take().await?;
    assert_eq!(s.stats().await?.oldest_pending, Some(second));
    s.settle(&taken, Settlement::Release).await?;
    assert_eq!(s.stats().await?.oldest_pending, Some(first), "a released task waits since it began to");
    Ok(())
}

pub(crate) async fn queues_are_counted_apart_and_answered_in_order(s: Stage<'_>) -> Outcome {
    s.settled(task("a").queue("x"), complete()).await?;
    s.enqueue(task("a").queue("y")).await?;
    let asked = crate::builders::queues(&["y", "none", "x", "y"]);
    let stats = s.broker().queue_stats(asked.clone()).await?;
    assert_eq!(stats.iter().map(|stats| stats.queue.clone()).collect::<Vec<_>>(), asked);
    let seen: Vec<_> = stats.iter().map(|stats| (stats.pending, stats.processed)).collect();
    assert_eq!(seen, [(1, 0), (0, 0), (0, 1), (1, 0)]);
    Ok(())
}
