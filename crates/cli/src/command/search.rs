//! `demo search`: where words occur in what the demo has read.

use std::path::Path;

use crate::args::Search;
use crate::command::demo::HOME;
use crate::failure::Failure;
use crate::print::Output;
use crate::text;

pub(crate) fn run(search: &Search, out: &mut Output) -> Result<(), Failure> {
    let words = search.words.join(" ");
    let hits = poolwright_demo::search(Path::new(HOME), &words, search.limit)?;
    out.result(&hits, |_| text::harmless(&poolwright_demo::text::hits(&words, &hits)))
}
