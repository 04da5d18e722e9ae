//! `pause`: stops workers from taking tasks of a queue.

use serde::Serialize;

use crate::args::Pause;
use crate::command::acted::queue_name;
use crate::failure::Failure;
use crate::place::Place;
use crate::print::Output;

#[derive(Serialize)]
struct Paused<'a> {
    queue: String,
    paused: bool,
    paused_reason: &'a str,
    /// It was not paused before.
    changed: bool,
}

pub(crate) async fn run(pause: &Pause, place: &Place, out: &mut Output) -> Result<(), Failure> {
    place
        .look(async |open| {
            let changed = open.inspector().pause(&pause.at.queue, &pause.reason).await?;
            let queue = queue_name(open, &pause.at.queue);
            let how = if changed { "is paused" } else { "was paused already, and has a new reason" };
            let said = format!("{queue} {how}\n");
            out.result(&Paused { queue, paused: true, paused_reason: &pause.reason, changed }, |_| said)
        })
        .await
}
