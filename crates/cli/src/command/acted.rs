//! What an act on one task came to, as it is printed.

use poolwright::core::State;
use serde::Serialize;

use crate::args::TaskAt;
use crate::failure::Failure;
use crate::place::Open;
use crate::print::Output;

#[derive(Serialize)]
struct Acted<'a> {
    id: &'a str,
    queue: String,
    /// The state it was in.
    was: State,
}

/// Prints what was done, and the state the task was in before.
pub(crate) fn show(
    done: &str,
    at: &TaskAt,
    was: State,
    open: &Open,
    out: &mut Output,
) -> Result<(), Failure> {
    let acted = Acted { id: &at.id, queue: queue_name(open, &at.queue), was };
    out.result(&acted, |_| format!("{}/{} {done} (was {was})\n", acted.queue, acted.id))
}

/// What the file calls a queue that is named as the file or as the store calls it.
pub(crate) fn queue_name(open: &Open, name: &str) -> String {
    open.topology().queue(name).map_or_else(|| name.to_owned(), |queue| queue.name.to_string())
}
