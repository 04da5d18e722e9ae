//! Every word that a person reads of a run: the lines while it goes on, the report at its end, and what a search found.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use poolwright::registry::Topology;
use poolwright::worker::{PoolStatus, Status};

use crate::error::READ;
use crate::library::Hit;
use crate::stage::wiki::LeftOut;
use crate::summary::{Dead, Summary};

/// A worker that has a task, that has one which cannot be stopped, that has none.
const BUSY: char = '■';
const STALLED: char = '▲';
const FREE: char = '□';

/// Dead letters that a report lists.
const DEAD_MAX: usize = 40;
/// Reasons for which files were left out that a report lists.
const REASONS_MAX: usize = 8;

/// How the pools of a worker are called, in its order, all equally wide.
pub(super) fn labels(topology: &Topology, status: &Status) -> Vec<String> {
    let label = |pool: &PoolStatus| {
        let known = topology.pools().iter().find(|known| known.name == pool.name);
        known.map_or_else(|| pool.name.to_string(), |known| known.label.to_string())
    };
    let labels: Vec<String> = status.pools.iter().map(label).collect();
    let width = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    labels.into_iter().map(|label| format!("{label:<width$}")).collect()
}

/// One pool: its slots and what it has done.
pub(super) fn pool(label: &str, pool: &PoolStatus) -> String {
    /// Where the numbers begin; a pool with more workers moves its own.
    const SLOTS: usize = 16;
    let mut line = format!("  {label}  {:<SLOTS$}  {:>8} done", slots(pool), number(pool.completed));
    if pool.failed > 0 {
        push(&mut line, format_args!("  {} failed", number(pool.failed)));
    }
    if pool.stalled > 0 {
        push(&mut line, format_args!("  {} stalled", pool.stalled));
    }
    line
}

fn slots(pool: &PoolStatus) -> String {
    let stalled = pool.stalled.min(pool.busy);
    let free = pool.workers.saturating_sub(pool.busy);
    let squares = |square: char, count: u32| std::iter::repeat_n(square, count as usize);
    squares(BUSY, pool.busy - stalled).chain(squares(STALLED, stalled)).chain(squares(FREE, free)).collect()
}

/// The whole worker on one line.
pub(super) fn whole(status: &Status, took: Duration, waiting: Option<u64>) -> String {
    let counts = &status.counts;
    let done = counts.completed + counts.archived + counts.discarded;
    let rate = if took.is_zero() { 0.0 } else { done as f64 / took.as_secs_f64() };
    let mut line = format!("  {}  {} tasks  {}/s", duration(took), number(done), speed(rate));
    if counts.archived > 0 {
        push(&mut line, format_args!("  {} dead", number(counts.archived)));
    }
    if let Some(waiting) = waiting {
        push(&mut line, format_args!("  {} waiting", number(waiting)));
    }
    if status.store_is_away {
        line.push_str("  the store does not answer");
    }
    line
}

/// How many workers of each pool are busy, on one line.
pub(super) fn busy(labels: &[String], status: &Status) -> String {
    let pool =
        |(label, pool): (&String, &PoolStatus)| format!("{} {}/{}", label.trim(), pool.busy, pool.workers);
    labels.iter().zip(&status.pools).map(pool).collect::<Vec<_>>().join("  ")
}

/// The report at the end of a run.
pub(crate) fn report(summary: &Summary) -> String {
    let mut text = String::new();
    let folders: Vec<String> = summary.folders.iter().map(|folder| shown(folder.as_str())).collect();
    push(&mut text, format_args!("{}\n", folders.join(", ")));
    push(&mut text, format_args!("  this run   {}\n", this_run(summary)));
    let row = |text: &mut String, count: u64, what: &str| {
        push(text, format_args!("  {:>9}  {what}{}\n", number(count), if count == 1 { "" } else { "s" }));
    };
    row(&mut text, summary.documents, "document");
    row(&mut text, summary.images, "picture");
    row(&mut text, summary.chunks, "chunk");
    row(&mut text, summary.questions, "question");
    row(&mut text, summary.terms, "term");
    row(&mut text, summary.wiki_pages, "wiki page");
    left_out(&mut text, summary.skipped, &summary.left_out);
    dead(&mut text, &summary.dead);
    open_ends(&mut text, summary);
    text.push('\n');
    if summary.wiki_pages > 0 {
        push(&mut text, format_args!("Read    {}\n", shown(&summary.wiki.display().to_string())));
    }
    if summary.chunks > 0 {
        text.push_str("Search  poolwright demo search WORDS\n");
    }
    if !summary.dead.is_empty() {
        text.push_str(
            "Retry   poolwright demo --retry-failed, after a look at poolwright dead-letters list\n",
        );
    }
    text
}

/// What was new, and how quick it went.
fn this_run(summary: &Summary) -> String {
    let found = [
        (summary.new, "new"),
        (summary.changed, "changed"),
        (summary.resumed, "begun again"),
        (summary.removed, "removed"),
        (summary.unchanged, "unchanged"),
    ];
    let found: Vec<String> = found
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", number(*count)))
        .collect();
    let files = if found.is_empty() { "no files".to_owned() } else { format!("files: {}", found.join(", ")) };
    let took = duration(Duration::from_secs_f64(summary.seconds));
    let rate = speed(summary.tasks_per_second);
    format!("{files}; {} in {took}, {rate}/s", counted(summary.tasks, "task"))
}

fn left_out(text: &mut String, skipped: u64, reasons: &[LeftOut]) {
    if skipped == 0 {
        return;
    }
    push(text, format_args!("\nLeft out: {}. {READ}.\n", counted(skipped, "file")));
    for left in reasons.iter().take(REASONS_MAX) {
        push(
            text,
            format_args!(
                "  {:>9}  {}, as {}\n",
                number(left.files),
                plain(left.short()),
                plain(&left.example)
            ),
        );
    }
    more(text, reasons.len(), REASONS_MAX, "reason");
}

fn dead(text: &mut String, dead: &[Dead]) {
    if dead.is_empty() {
        return;
    }
    push(text, format_args!("\n{}:\n", counted(dead.len() as u64, "dead letter")));
    for Dead { path, task_type, class, reason } in dead.iter().take(DEAD_MAX) {
        // The content of a file is what most letters are about; another class is worth a word.
        let class = if class == "permanent" { String::new() } else { format!(", {class}") };
        push(text, format_args!("  {}\n      {} ({task_type}{class})\n", shown(path), plain(reason)));
    }
    more(text, dead.len(), DEAD_MAX, "dead letter");
}

/// What is not as one would wish.
fn open_ends(text: &mut String, summary: &Summary) {
    let files = counted(summary.unfinished, "file");
    match (summary.interrupted, summary.unfinished) {
        (true, _) => {
            push(
                text,
                format_args!("\nStopped before its end, with {files} to go. The same command goes on.\n"),
            );
        }
        (false, 0) => {}
        (false, _) => push(text, format_args!("\nNot finished: {files}. The same command goes on.\n")),
    }
    if summary.other_tasks > 0 {
        let tasks = counted(summary.other_tasks, "task");
        push(
            text,
            format_args!("\nIn the queues: {tasks} of other work, which this command does not run.\n"),
        );
    }
}

/// What a search found.
#[must_use]
pub fn hits(words: &str, hits: &[Hit]) -> String {
    if hits.is_empty() {
        return format!("Nothing holds {words:?}.\n");
    }
    let mut text = String::new();
    for Hit { source, path, heading, snippet, .. } in hits {
        let path = Path::new(source.as_str()).join(path);
        push(&mut text, format_args!("{}\n", shown(&path.display().to_string())));
        push(&mut text, format_args!("  {}\n    {}\n\n", plain(heading), plain(snippet)));
    }
    text.pop();
    text
}

fn more(text: &mut String, all: usize, shown: usize, what: &str) {
    if all > shown {
        push(text, format_args!("  … and {}\n", counted((all - shown) as u64, &format!("more {what}"))));
    }
}

/// A path as seen from the present folder, where it lies below it.
fn shown(path: &str) -> String {
    let here = std::env::current_dir().ok();
    let below = here.as_ref().and_then(|here| Path::new(path).strip_prefix(here).ok());
    let path = match below.and_then(Path::to_str) {
        Some("") => ".",
        Some(below) => below,
        None => path,
    };
    plain(path)
}

/// Text of others on one line: what a terminal could take for a command is shown as a mark.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { char::REPLACEMENT_CHARACTER } else { char }).collect()
}

/// `1 task`, `1,234 tasks`.
fn counted(count: u64, what: &str) -> String {
    format!("{} {what}{}", number(count), if count == 1 { "" } else { "s" })
}

/// With a comma before each three digits.
fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Tasks a second: `0.5`, `1,066`.
fn speed(rate: f64) -> String {
    if rate < 10.0 { format!("{rate:.1}") } else { number(rate as u64) }
}

/// `0.4 s`, `12 s`, `3 min 05 s`.
fn duration(took: Duration) -> String {
    match took.as_secs() {
        0..10 => format!("{:.1} s", took.as_secs_f64()),
        secs @ 10..60 => format!("{secs} s"),
        secs => format!("{} min {:02} s", secs / 60, secs % 60),
    }
}

fn push(text: &mut String, more: std::fmt::Arguments<'_>) {
    text.write_fmt(more).expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests;
