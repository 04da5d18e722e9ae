//! `archive`: sets a waiting task aside. Its dead letter is written by the upkeep of the next worker.

use crate::args::Archive;
use crate::command::acted;
use crate::failure::Failure;
use crate::place::Place;
use crate::print::Output;

pub(crate) async fn run(archive: &Archive, place: &Place, out: &mut Output) -> Result<(), Failure> {
    let at = &archive.at;
    place
        .look(async |open| {
            let which = (at.queue.as_str(), at.id.as_str());
            let was = open.inspector().archive(which, &archive.reason).await?;
            acted::show("is archived", at, was, open, out)
        })
        .await
}
