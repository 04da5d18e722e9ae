//! `dead-letters`: what failed for good.

mod delete;
mod list;
mod replay;
mod show;

use poolwright::inspector::Letters;
use poolwright::ledger::Filter;

use crate::args::{DeadLetters, LetterFilter};
use crate::failure::Failure;
use crate::place::{Open, Place};
use crate::print::Output;

pub(crate) async fn run(command: DeadLetters, place: &Place, out: &mut Output) -> Result<(), Failure> {
    match command {
        DeadLetters::List(list) => list::run(list, place, out).await,
        DeadLetters::Show { id } => show::run(id, place, out).await,
        DeadLetters::Replay(replay) => replay::run(replay, place, out).await,
        DeadLetters::Delete { ids } => delete::run(&ids, place, out).await,
    }
}

/// The filter in the ledger's words. A type that neither the file nor any letter knows is a typing error.
async fn filter(said: LetterFilter, open: &Open, letters: &Letters) -> Result<Filter, Failure> {
    if let Some(name) = &said.task_type
        && let Err(unknown) = open.topology().require_type(name)
    {
        let of_type = Filter { task_type: Some(name.clone()), ..Filter::default() };
        if letters.count(of_type).await? == 0 {
            return Err(unknown.into());
        }
    }
    let queue = match &said.queue {
        Some(name) => Some(open.inspector().stored(name).await?.to_string()),
        None => None,
    };
    Ok(Filter {
        task_type: said.task_type,
        reach: said.scope,
        tenant: said.tenant.map(Into::into),
        class: said.class,
        queue,
        unreplayed: said.unreplayed,
    })
}
