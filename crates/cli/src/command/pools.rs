//! `pools`: the pools over all live processes.

use poolwright::inspector::PoolView;

use crate::failure::Failure;
use crate::place::Place;
use crate::print::{self, Output, Paint, Tone};
use crate::table::{Cell, Table};

pub(crate) async fn run(place: &Place, out: &mut Output) -> Result<(), Failure> {
    place
        .look(async |open| {
            let pools = open.inspector().pools().await?;
            out.result(&pools, |paint| text(&pools, paint))?;
            if !out.is_json() && pools.iter().all(|pool| pool.instances == 0) {
                print::note("no live process runs a pool");
            }
            Ok(())
        })
        .await
}

fn text(pools: &[PoolView], paint: Paint) -> String {
    let mut table = Table::new(&[
        "POOL",
        "#WORKERS EACH",
        "#QUEUES",
        "#PROCESSES",
        "#WORKERS",
        "#BUSY",
        "#STALLED",
        "#USED",
    ]);
    for pool in pools {
        let stalled = Cell::count(pool.stalled);
        table.row([
            Cell::of(&pool.name),
            Cell::of(pool.concurrency),
            Cell::of(pool.queue_count),
            Cell::count(pool.instances as u64),
            Cell::count(pool.cluster_capacity),
            Cell::count(pool.active),
            if pool.stalled == 0 { stalled } else { stalled.tone(Tone::Alarm) },
            Cell::of(format!("{:.0} %", pool.utilization * 100.0)),
        ]);
    }
    table.render(paint)
}
