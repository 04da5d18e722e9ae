//! Makes due tasks pending, at the due time and not at a tick.
//!
//! The store says when the next task is due, and a watch says when an earlier one may have come. While tasks arrive
//! without pause the watch never rests; then `promote_gap` does.

use std::sync::Arc;
use std::time::Duration;

use poolwright_broker::Watch;
use poolwright_core::Timestamp;
use tokio::time::sleep;

use crate::site::Site;

/// How many tasks become pending in one call.
const LIMIT: u32 = 1_000;

/// Promotes until the worker has ended.
pub(crate) async fn run(site: Arc<Site>, watch: Box<dyn Watch>) {
    tokio::select! {
        () = site.stops.ending.cancelled() => {}
        () = promote(&site, watch) => {}
    }
}

async fn promote(site: &Site, mut watch: Box<dyn Watch>) {
    let mut backoff = site.backoff();
    loop {
        let promoted = match site.call(site.broker.promote_due(site.queues.clone(), LIMIT)).await {
            Ok(promoted) => promoted,
            Err(error) => {
                tracing::debug!(%error, "due tasks were not promoted");
                sleep(backoff.next()).await;
                continue;
            }
        };
        backoff.reset();
        if promoted.tasks >= LIMIT {
            tokio::task::yield_now().await;
            continue;
        }
        let now = site.broker.now();
        let look = site.broker.look_every().map(|every| until_next(now, every));
        let at_most = look.unwrap_or(Duration::MAX).min(site.options.promote_at_most);
        let wait = promoted.next_due.map_or(at_most, |due| due.after(now).min(at_most));
        let (gap, rest) = split(wait, site.options.promote_gap);
        sleep(gap).await;
        tokio::select! {
            () = sleep(rest) => {}
            () = watch.changed() => {}
        }
    }
}

/// Until the clock shows a multiple of this the next time, and a moment more: the clock here is a round trip behind the
/// store's, or before it.
fn until_next(now: Timestamp, every: Duration) -> Duration {
    let (now, every) = (now.as_micros().unsigned_abs(), u64::try_from(every.as_micros()).unwrap_or(u64::MAX));
    Duration::from_micros(every - now % every.max(1)) + Duration::from_millis(2)
}

/// What is waited for in any case, and what a ring of the watch cuts short. A known due time is never passed over.
fn split(wait: Duration, gap: Duration) -> (Duration, Duration) {
    let gap = gap.min(wait);
    (gap, wait - gap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_comes_just_after_each_whole_second() {
        let second = Duration::from_secs(1);
        let wait = |micros| until_next(Timestamp::from_micros(micros), second).as_micros();
        assert_eq!((wait(7_000_000), wait(7_250_000), wait(7_999_999)), (1_002_000, 752_000, 2_001));
    }

    #[test]
    fn a_due_time_inside_the_gap_is_not_waited_past() {
        let ms = Duration::from_millis;
        assert_eq!(split(ms(10), ms(50)), (ms(10), ms(0)));
        assert_eq!(split(ms(200), ms(50)), (ms(50), ms(150)));
    }
}
