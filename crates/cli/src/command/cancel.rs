//! `cancel`: asks for the end of a task.

use poolwright::inspector::Cancelled;
use serde::Serialize;

use crate::args::TaskAt;
use crate::command::acted::queue_name;
use crate::failure::Failure;
use crate::place::Place;
use crate::print::Output;

#[derive(Serialize)]
struct Outcome<'a> {
    id: &'a str,
    queue: String,
    outcome: Cancelled,
}

pub(crate) async fn run(at: &TaskAt, place: &Place, out: &mut Output) -> Result<(), Failure> {
    place
        .look(async |open| {
            let outcome = open.inspector().cancel_task((at.queue.as_str(), at.id.as_str())).await?;
            let (queue, id) = (queue_name(open, &at.queue), at.id.as_str());
            let said = format!("{queue}/{id} {}", sentence(outcome));
            if outcome.is_done() {
                out.result(&Outcome { id, queue, outcome }, |_| said + "\n")
            } else {
                Err(Failure::Failed(said))
            }
        })
        .await
}

const fn sentence(outcome: Cancelled) -> &'static str {
    match outcome {
        Cancelled::Deleted => "waited, and is gone",
        Cancelled::Flagged => "waits, and will be discarded instead of run",
        Cancelled::Signalled => "runs, and its worker is told to end it",
        Cancelled::Finished => "has ended already, there is nothing to cancel",
        Cancelled::Protected => "is protected by the file of queues, no cancel reaches it",
        Cancelled::NotFound => "is not there",
        _ => "met something that this program does not know",
    }
}
