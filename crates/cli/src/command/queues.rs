//! `queues`: all queues in numbers.

use std::time::Duration;

use poolwright::core::Timestamp;
use poolwright::inspector::QueueView;

use crate::ago;
use crate::failure::Failure;
use crate::place::Place;
use crate::print::{Output, Paint, Tone};
use crate::table::{Cell, Table};

/// A reason is cut there.
const REASON_COLUMNS_MAX: usize = 60;

pub(crate) async fn run(place: &Place, out: &mut Output) -> Result<(), Failure> {
    place
        .look(async |open| {
            let queues = open.inspector().queues().await?;
            out.result(&queues, |paint| text(&queues, open.now(), paint))
        })
        .await
}

fn text(queues: &[QueueView], now: Timestamp, paint: Paint) -> String {
    let mut table = Table::new(&[
        "QUEUE",
        "POOL",
        "#PENDING",
        "#ACTIVE",
        "#SCHEDULED",
        "#RETRY",
        "#ARCHIVED",
        "#COMPLETED",
        "#DONE TODAY",
        "#FAILED TODAY",
        "#OLDEST WAITS",
        "",
    ]);
    for queue in queues {
        table.row([
            Cell::from(&queue.name),
            Cell::maybe(queue.pool.as_ref()),
            Cell::count(queue.pending),
            Cell::count(queue.active),
            Cell::count(queue.scheduled),
            Cell::count(queue.retry),
            Cell::count(queue.archived).tone(if queue.archived == 0 { Tone::Faint } else { Tone::Alarm }),
            Cell::count(queue.completed),
            Cell::count(queue.processed),
            Cell::count(queue.failed),
            waits(queue),
            remark(queue, now),
        ]);
    }
    table.render(paint)
}

fn waits(queue: &QueueView) -> Cell {
    let waits = (queue.pending > 0).then(|| ago::span(Duration::from_millis(queue.latency_ms)));
    Cell::maybe(waits)
}

/// What is unusual about it.
fn remark(queue: &QueueView, now: Timestamp) -> Cell {
    let mut remarks = Vec::new();
    if queue.paused {
        let since = queue.paused_since.map_or_else(String::new, |at| format!(" {}", ago::from_now(now, at)));
        remarks.push(paused(&since, queue.paused_reason.as_deref().unwrap_or_default()));
    }
    if queue.quarantined > 0 {
        remarks.push(format!("{} in quarantine", queue.quarantined));
    }
    if queue.pool.is_none() {
        remarks.push("not in the file of queues".to_owned());
    }
    Cell::cut(&remarks.join("; "), REASON_COLUMNS_MAX).tone(Tone::Notice)
}

/// Whoever paused it with asynq's tools gave no reason.
fn paused(since: &str, reason: &str) -> String {
    let colon = if reason.is_empty() { "" } else { ": " };
    format!("paused{since}{colon}{reason}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_without_a_reason_leaves_no_colon_behind() {
        assert_eq!(paused(" 5s ago", ""), "paused 5s ago");
        assert_eq!(paused(" 5s ago", "the disk is full"), "paused 5s ago: the disk is full");
    }
}
