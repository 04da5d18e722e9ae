//! `delete`: removes a task that does not run.

use crate::args::TaskAt;
use crate::command::acted;
use crate::failure::Failure;
use crate::place::Place;
use crate::print::Output;

pub(crate) async fn run(at: &TaskAt, place: &Place, out: &mut Output) -> Result<(), Failure> {
    place
        .look(async |open| {
            let was = open.inspector().delete((at.queue.as_str(), at.id.as_str())).await?;
            acted::show("is deleted", at, was, open, out)
        })
        .await
}
