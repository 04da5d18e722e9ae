//! `dead-letters list`: a page of letters, newest first.

use poolwright::core::Timestamp;
use poolwright::inspector::LetterListing;
use poolwright::ledger::{LetterId, ListRequest};

use crate::ago;
use crate::args::ListLetters;
use crate::failure::Failure;
use crate::place::Place;
use crate::print::{self, Output, Paint, Tone};
use crate::table::{Cell, Table};

/// An error is cut there; `show` has all of it.
const ERROR_COLUMNS_MAX: usize = 60;

pub(crate) async fn run(list: ListLetters, place: &Place, out: &mut Output) -> Result<(), Failure> {
    place
        .look(async |open| {
            let letters = open.letters()?;
            let filter = super::filter(list.filter, open, &letters).await?;
            let request = ListRequest { filter, before: list.before.map(LetterId), limit: list.limit };
            let page = letters.list(request).await?;
            out.result(&page, |paint| text(&page, open.now(), paint))?;
            if !out.is_json() {
                say(&page);
            }
            Ok(())
        })
        .await
}

/// What the table does not show.
fn say(page: &LetterListing) {
    if page.letters.is_empty() {
        print::note("no dead letters");
    }
    if let Some(next) = page.next {
        print::note(format!("there are more; go on with --before {next}"));
    }
}

fn text(page: &LetterListing, now: Timestamp, paint: Paint) -> String {
    let mut table =
        Table::new(&["#ID", "FAILED", "CLASS", "TYPE", "TASK", "SCOPE", "REPLAYED", "LAST ERROR"]);
    for letter in &page.letters {
        let replayed = letter.replayed.as_ref().map(|replay| ago::from_now(now, replay.at));
        let scope = (!letter.scope_id.is_empty()).then(|| format!("{}/{}", letter.scope, letter.scope_id));
        table.row([
            Cell::of(letter.id),
            Cell::of(ago::from_now(now, letter.failed_at)),
            Cell::of(letter.class).tone(Tone::Notice),
            Cell::of(&letter.task_type),
            Cell::of(format!("{}/{}", letter.queue, letter.task_id)),
            Cell::maybe(scope),
            Cell::maybe(replayed),
            Cell::cut(&letter.last_error, ERROR_COLUMNS_MAX),
        ]);
    }
    table.render(paint)
}
