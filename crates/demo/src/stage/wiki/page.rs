//! Writes the pages as Markdown.

use std::fmt::Write as _;

use serde::Serialize;

use super::atlas::{Atlas, Entry};
use super::name::PageName;
use crate::Kind;
use crate::error::READ;
use crate::id::{ContentHash, DocumentId};
use crate::stage::image::{Colour, Share};
use crate::stage::question::Question;
use crate::stage::summary::Summary;
use crate::stage::words::shorten;

/// Questions that a document's page shows.
pub(crate) const QUESTIONS_MAX: usize = 12;
/// Terms that a document's page shows.
const TERMS_MAX: usize = 16;
/// Documents that a page lists under one head.
const LISTED_MAX: usize = 100;

/// A file of the wiki.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Where it lies.
    pub name: PageName,
    /// Markdown, or a PNG.
    pub content: Vec<u8>,
}

impl Page {
    fn text(name: PageName, text: String) -> Self {
        Self { name, content: text.into_bytes() }
    }

    /// Of its content.
    #[must_use]
    pub fn hash(&self) -> ContentHash {
        ContentHash::of(&self.content)
    }
}

/// What the library holds of one document beyond its entry in the atlas.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// For a document with text, once that task has run.
    pub summary: Option<Summary>,
    /// The first ones, in the order of the chunks.
    pub questions: Vec<Question>,
    /// All there are.
    pub questions_total: u64,
    /// Chunks it was cut into.
    pub chunks: u64,
    /// Width, height, average and colours, for a picture.
    pub picture: Option<(u32, u32, Option<Colour>, Vec<Share>)>,
    /// How it was read.
    pub notes: Vec<String>,
}

/// A file that has no page, and why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Failure {
    /// Below its folder.
    pub path: String,
    /// For a person.
    pub reason: String,
}

/// Files that were left out for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Why.
    pub reason: String,
    /// How many.
    pub files: u64,
    /// One of them, below its folder.
    pub example: String,
}

impl LeftOut {
    /// The reason under a head that says what is read.
    #[must_use]
    pub fn short(&self) -> &str {
        let rest = self.reason.strip_prefix(READ).and_then(|rest| rest.strip_prefix(", not "));
        rest.unwrap_or(&self.reason)
    }
}

/// The page of a document that the atlas holds; nothing when it does not.
#[must_use]
pub fn document_page(atlas: &Atlas, id: &DocumentId, details: &Details) -> Option<Page> {
    let place = atlas.place(id)?;
    let entry = &atlas.entries()[place];
    let name = PageName::document(&entry.id, &entry.path);
    let mut text = format!("# {}\n\n", escape(&entry.title));
    let chunks = counted(details.chunks, "chunk");
    let size = if entry.kind.is_picture() { String::new() } else { format!(" · {chunks}") };
    push(&mut text, format_args!("{} · {}{size}\n", code(&entry.path), word(entry.kind)));
    if let Some(summary) = details.summary.as_ref().filter(|summary| !summary.text.is_empty()) {
        push(&mut text, format_args!("\n> {}\n", escape(&summary.text)));
    }
    picture(&mut text, entry, &name, details);
    shown_pictures(&mut text, atlas, place, &name);
    questions(&mut text, details);
    terms(&mut text, atlas, place, &name);
    related(&mut text, atlas, place, &name);
    let texts = |places: &mut dyn Iterator<Item = &usize>| -> Vec<usize> {
        places.copied().filter(|at| !atlas.entries()[*at].kind.is_picture()).collect()
    };
    list(&mut text, "Links to", &texts(&mut atlas.leads_to(place).iter()), atlas, &name);
    list(&mut text, "Linked from", &texts(&mut atlas.led_from(place).iter()), atlas, &name);
    if !details.notes.is_empty() {
        text.push_str("\n## Notes on reading\n\n");
        details.notes.iter().for_each(|note| push(&mut text, format_args!("- {}\n", escape(note))));
    }
    push(&mut text, format_args!("\n[Index]({})\n", PageName::index().seen_from(&name)));
    Some(Page::text(name, text))
}

/// The page of a term that the atlas holds; nothing when it does not.
#[must_use]
pub fn term_page(atlas: &Atlas, term: &str) -> Option<Page> {
    let topic = atlas.topic(term)?;
    let name = PageName::term(term);
    let mut text = format!("# {}\n\nIn {} documents:\n\n", escape(&topic.label), topic.places.len());
    for (at, count) in topic.places.iter().take(LISTED_MAX) {
        let times = if *count == 1 { "once".to_owned() } else { format!("{count} times") };
        push(&mut text, format_args!("- {} — {times}\n", link(&atlas.entries()[*at], &name)));
    }
    more(&mut text, topic.places.len());
    push(&mut text, format_args!("\n[Index]({})\n", PageName::index().seen_from(&name)));
    Some(Page::text(name, text))
}

/// The first page: everything there is, by folder, and what is missing.
#[must_use]
pub fn index_page(atlas: &Atlas, failures: &[Failure], left_out: &[LeftOut]) -> Page {
    let name = PageName::index();
    let pictures = atlas.entries().iter().filter(|entry| entry.kind.is_picture()).count() as u64;
    let documents = counted(atlas.entries().len() as u64 - pictures, "document");
    let terms = counted(atlas.terms().count() as u64, "term");
    let mut text = format!("# Wiki\n\n{documents} · {} · {terms}\n", counted(pictures, "picture"));
    let mut folder = None;
    for entry in atlas.entries() {
        let here = (&entry.source, entry.path.rsplit_once('/').map_or("", |(folder, _)| folder));
        if folder != Some(here) {
            let shown = if here.1.is_empty() { "Top folder".to_owned() } else { escape(here.1) };
            push(&mut text, format_args!("\n## {shown}\n\n"));
            folder = Some(here);
        }
        push(&mut text, format_args!("- {}\n", link(entry, &name)));
    }
    if atlas.terms().next().is_some() {
        text.push_str("\n## Terms\n\n");
        let links: Vec<String> = atlas.terms().map(|term| term_link(atlas, term, &name)).collect();
        push(&mut text, format_args!("{}\n", links.join(" · ")));
    }
    if !failures.is_empty() {
        text.push_str("\n## Not read\n\n");
        for failure in failures.iter().take(LISTED_MAX) {
            push(&mut text, format_args!("- {}: {}\n", code(&failure.path), escape(&failure.reason)));
        }
        more(&mut text, failures.len());
    }
    if !left_out.is_empty() {
        push(&mut text, format_args!("\n## Left out\n\n{READ}.\n\n"));
        for left in left_out.iter().take(LISTED_MAX) {
            let (reason, files) = (escape(left.short()), counted(left.files, "file"));
            push(&mut text, format_args!("- {reason}: {files}, as {}\n", code(&left.example)));
        }
        more(&mut text, left_out.len());
    }
    Page::text(name, text)
}

/// The thumbnail of a picture as a file of the wiki.
#[must_use]
pub fn thumbnail(entry: &Entry, png: Vec<u8>) -> Page {
    Page { name: PageName::thumbnail(&entry.id, &entry.path), content: png }
}

fn picture(text: &mut String, entry: &Entry, here: &PageName, details: &Details) {
    let Some((width, height, average, colours)) = &details.picture else { return };
    push(text, format_args!("\n{}\n\n{width} × {height} points", shown(entry, here)));
    if let Some(average) = average {
        push(text, format_args!(", on average `{average}`"));
    }
    text.push('\n');
    if !colours.is_empty() {
        text.push_str("\n| Colour | Share |\n| --- | ---: |\n");
    }
    for share in colours {
        push(text, format_args!("| `{}` | {} % |\n", share.colour, share.percent));
    }
}

fn shown_pictures(text: &mut String, atlas: &Atlas, place: usize, here: &PageName) {
    let pictures = atlas.leads_to(place).iter().map(|at| &atlas.entries()[*at]);
    let pictures: Vec<&Entry> = pictures.filter(|entry| entry.kind.is_picture()).take(LISTED_MAX).collect();
    if pictures.is_empty() {
        return;
    }
    text.push_str("\n## Pictures\n\n");
    for entry in pictures {
        let page = PageName::document(&entry.id, &entry.path).seen_from(here);
        push(text, format_args!("[{}]({page})\n", shown(entry, here)));
    }
}

fn questions(text: &mut String, details: &Details) {
    let shown = &details.questions[..details.questions.len().min(QUESTIONS_MAX)];
    if shown.is_empty() {
        return;
    }
    text.push_str("\n## Questions\n\n");
    for question in shown {
        push(text, format_args!("- **{}** {}\n", escape(&question.text), escape(&question.answer)));
    }
    let left = details.questions_total.saturating_sub(shown.len() as u64);
    if left > 0 {
        push(text, format_args!("- and {left} more\n"));
    }
}

fn terms(text: &mut String, atlas: &Atlas, place: usize, here: &PageName) {
    let terms = atlas.terms_of(place);
    if terms.is_empty() {
        return;
    }
    let links: Vec<String> = terms.iter().take(TERMS_MAX).map(|term| term_link(atlas, term, here)).collect();
    push(text, format_args!("\n## Terms\n\n{}\n", links.join(" · ")));
}

fn related(text: &mut String, atlas: &Atlas, place: usize, here: &PageName) {
    let related = atlas.related(place);
    if related.is_empty() {
        return;
    }
    text.push_str("\n## Related\n\n");
    for (other, shared) in related {
        let shared: Vec<String> = shared.iter().take(4).map(|term| term_link(atlas, term, here)).collect();
        push(text, format_args!("- {} through {}\n", link(&atlas.entries()[other], here), shared.join(", ")));
    }
}

fn list(text: &mut String, head: &str, places: &[usize], atlas: &Atlas, here: &PageName) {
    if places.is_empty() {
        return;
    }
    push(text, format_args!("\n## {head}\n\n"));
    for at in places.iter().take(LISTED_MAX) {
        push(text, format_args!("- {}\n", link(&atlas.entries()[*at], here)));
    }
    more(text, places.len());
}

fn more(text: &mut String, count: usize) {
    if count > LISTED_MAX {
        push(text, format_args!("- and {} more\n", count - LISTED_MAX));
    }
}

fn link(entry: &Entry, from: &PageName) -> String {
    format!("[{}]({})", escape(&entry.title), PageName::document(&entry.id, &entry.path).seen_from(from))
}

fn term_link(atlas: &Atlas, term: &str, from: &PageName) -> String {
    let label = atlas.topic(term).map_or(term, |topic| topic.label.as_str());
    format!("[{}]({})", escape(label), PageName::term(term).seen_from(from))
}

fn shown(entry: &Entry, here: &PageName) -> String {
    format!("![{}]({})", escape(&entry.title), PageName::thumbnail(&entry.id, &entry.path).seen_from(here))
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn push(text: &mut String, more: std::fmt::Arguments<'_>) {
    text.write_fmt(more).expect("writing to a string cannot fail");
}

/// Text of a document as one line of ours: nothing in it may act as Markdown or HTML.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in shorten(text, 2_000).chars() {
        if matches!(char, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '!' | '&') {
            escaped.push('\\');
        }
        escaped.push(char);
    }
    escaped
}

/// A path as code; a backtick in it would end the span.
fn code(path: &str) -> String {
    format!("`{}`", path.replace('`', "'").replace('\n', " "))
}

/// How a kind is called at the head of a page.
fn word(kind: Kind) -> &'static str {
    kind.title().trim_start_matches("a ")
}

#[cfg(test)]
mod tests;
