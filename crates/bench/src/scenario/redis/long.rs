//! Many tasks run at once on one queue, and some end: what one end costs Redis.

use std::time::Duration;

use anyhow::Result;

use super::{Case, drain, enqueue};
use crate::load::Order;
use crate::meter::Meter;
use crate::outcome::{Metric, Outcome};

/// Ends that are measured, in as many goes as it takes.
const ENDS: usize = 2_000;

/// Ends while so many are active, in this order.
pub(crate) async fn run(case: Case<'_>, active: u32, order: Order) -> Result<Outcome> {
    let ends = case.tasks(ENDS);
    let mut total = Total::default();
    while total.done < ends {
        case.server.empty().await?;
        go(case, active, ends.min(active as usize), order, &mut total).await?;
    }
    let others = total.others.as_secs_f64() / total.wall.as_secs_f64();
    Ok(case.outcome(others).each(Metric::StoreTime, total.store, total.done))
}

/// What all goes took together.
#[derive(Default)]
struct Total {
    done: usize,
    wall: Duration,
    store: Duration,
    /// Time of the machine that others used; single goes are too short to tell.
    others: Duration,
}

async fn go(case: Case<'_>, active: u32, ends: usize, order: Order, total: &mut Total) -> Result<()> {
    enqueue::fill(case.server, case.system, active as usize, false).await?;
    let word = match order {
        Order::InOrder => "in-order",
        Order::Random => "random",
    };
    let args = [("workers", active.to_string()), ("tasks", ends.to_string()), ("order", word.to_owned())];
    let mut holder = case.system.start("hold", case.server, &args).await?;
    holder.say("go").await?;
    holder.hear("held").await?;
    let meter = Meter::start(case.server, &[holder.pid()]).await?;
    holder.run().await?;
    drain::until(case.server, |seen| seen.processed == ends as u64).await?;
    let spent = meter.stop().await?;
    holder.end().await?;
    total.done += ends;
    total.store += spent.store;
    total.others += spent.wall.mul_f64(spent.others);
    total.wall += spent.wall;
    Ok(())
}
