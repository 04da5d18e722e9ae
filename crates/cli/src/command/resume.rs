//! `resume`: lets workers take tasks of a paused queue again.

use serde::Serialize;

use crate::args::QueueAt;
use crate::command::acted::queue_name;
use crate::failure::Failure;
use crate::place::Place;
use crate::print::Output;

#[derive(Serialize)]
struct Resumed {
    queue: String,
    paused: bool,
    /// It was paused before.
    changed: bool,
}

pub(crate) async fn run(at: &QueueAt, place: &Place, out: &mut Output) -> Result<(), Failure> {
    place
        .look(async |open| {
            let changed = open.inspector().resume(&at.queue).await?;
            let queue = queue_name(open, &at.queue);
            let said = format!("{queue} {}\n", if changed { "is resumed" } else { "was not paused" });
            out.result(&Resumed { queue, paused: false, changed }, |_| said)
        })
        .await
}
