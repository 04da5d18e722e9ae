//! `run-now`: makes a task pending, whatever it waits for or however it ended.

use crate::args::TaskAt;
use crate::command::acted;
use crate::failure::Failure;
use crate::place::Place;
use crate::print::Output;

pub(crate) async fn run(at: &TaskAt, place: &Place, out: &mut Output) -> Result<(), Failure> {
    place
        .look(async |open| {
            let was = open.inspector().run_now((at.queue.as_str(), at.id.as_str())).await?;
            acted::show("is pending", at, was, open, out)
        })
        .await
}
