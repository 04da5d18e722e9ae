//! The largest rate that is carried: doubled until one is not, then halved in between.

use anyhow::{Result, ensure};

use super::Case;
use super::steady;
use crate::outcome::{Metric, Outcome};

/// Where the search begins; whoever does not carry this is not measured.
const FIRST: u32 = 2_000;

/// Where it ends.
const LAST: u32 = 256_000;

/// Halvings between a rate that is carried and its double: the result is good to 1 in 16.
const HALVINGS: usize = 4;

/// How long each try lasts.
const SECONDS: u32 = 6;

/// Searches.
pub(crate) async fn run(case: Case<'_>) -> Result<Outcome> {
    let (mut carried, mut others, mut rate) = (0, 0.0_f64, FIRST);
    while rate <= LAST && is_carried(case, rate, &mut others).await? {
        carried = rate;
        rate *= 2;
    }
    ensure!(carried > 0, "{} does not carry {FIRST} tasks a second here", case.system);
    let mut refused = rate;
    for _ in 0..HALVINGS {
        let between = carried.midpoint(refused);
        if is_carried(case, between, &mut others).await? {
            carried = between;
        } else {
            refused = between;
        }
    }
    Ok(case.outcome(others).with(Metric::Rate, f64::from(carried)))
}

/// One try, on an empty store; keeps the most that others used of the machine.
async fn is_carried(case: Case<'_>, rate: u32, others: &mut f64) -> Result<bool> {
    case.server.empty().await?;
    let run = steady::at(case, rate, SECONDS).await?;
    *others = others.max(run.spent.others);
    Ok(run.is_carried(rate))
}
