//! Mistakes of TOML itself, told as one problem for each cause.
//!
//! A parser that goes on after a mistake reports its consequences too (one unclosed list swallows the lines behind
//! it), and after some it stops. So what is broken is blanked out, byte for byte, and the rest is read again, until
//! nothing is broken: everything else that is wrong with the file can then be said in its right place.
//!
//! Invariant: a mended text has the length and the lines of the text it came from.

use std::borrow::Cow;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::node::Span;
use crate::problem::{Fault, Lines};
use crate::suggest::quote;

/// A file that is still broken after so many rounds is broken beyond telling; what was found by then is said.
const ROUNDS_MAX: usize = 20;

/// So many errors are looked at in one round; the next rounds bring the others.
const ERRORS_MAX: usize = 200;

/// The text without what is broken, and the causes. A text without mistakes is given back as it is.
pub(crate) fn mend(text: &str) -> (Cow<'_, str>, Vec<Fault>) {
    let mut mended = Cow::Borrowed(text);
    let mut faults: Vec<Fault> = Vec::new();
    for _ in 0..ROUNDS_MAX {
        let causes = causes(&mended);
        let mut blanked = false;
        for cause in causes {
            if !faults.iter().any(|known| known.span == cause.fault.span) {
                faults.push(cause.fault);
            }
            blanked |= blank(mended.to_mut(), cause.broken);
        }
        if !blanked {
            break;
        }
    }
    (mended, faults)
}

/// A mistake, and the bytes that cannot be read because of it.
struct Cause {
    fault: Fault,
    broken: Option<Range<usize>>,
}

/// Of all that is said about one `key = value`, or about one line outside of any, the first is the cause.
fn causes(text: &str) -> Vec<Cause> {
    let (tree, mut errors) = DeTable::parse_recoverable(text);
    let mut statements = Vec::new();
    collect(tree.get_ref(), &mut statements);
    statements.sort_by_key(|span| span.start);
    let lines = Lines::new(text);
    errors.sort_by_key(start);
    errors.truncate(ERRORS_MAX);
    let mut groups: Vec<(Option<&Span>, usize, Vec<&toml::de::Error>)> = Vec::new();
    for error in &errors {
        let at = start(error);
        let before = statements.partition_point(|span| span.start <= at);
        let statement = statements[..before].last().filter(|span| at <= span.end);
        let key = statement.map_or_else(|| lines.line(at), |span| span.start);
        match groups.iter_mut().find(|(other, k, _)| *other == statement && *k == key) {
            Some((.., group)) => group.push(error),
            None => groups.push((statement, key, vec![error])),
        }
    }
    groups.into_iter().map(|(statement, _, group)| cause(text, &lines, statement, &group)).collect()
}

fn cause(text: &str, lines: &Lines<'_>, statement: Option<&Span>, group: &[&toml::de::Error]) -> Cause {
    let at = start(group[0]);
    let mut fault = fault(group[0], text);
    if group[0].message() == "duplicate key" {
        // The first of the two was read; the second is where it belongs, so nothing is broken.
        return Cause { fault, broken: None };
    }
    let Some(statement) = statement else { return Cause { fault, broken: Some(section_or_line(text, at)) } };
    let end = statement.end.max(line_end(text, at));
    let unclosed = group.iter().any(|error| error.message().starts_with("unclosed"));
    let later = lines.line(at) > lines.line(statement.start);
    if later {
        let opened = statement.start..line_end(text, statement.start);
        fault = fault.related(
            &opened,
            if unclosed { "what begins here is not closed" } else { "in what begins here" },
        );
    }
    // What does not fit into an unclosed list is the next line of the file, which is sound.
    let broken =
        if unclosed && later && at < text.len() { statement.start..at } else { statement.start..end };
    Cause { fault, broken: Some(broken) }
}

fn start(error: &toml::de::Error) -> usize {
    error.span().map_or(0, |span| span.start)
}

fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |length| at + length)
}

/// The line; when it is a header, also all that stands under it, which would fall to the table above.
fn section_or_line(text: &str, at: usize) -> Range<usize> {
    let begin = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = line_end(text, at);
    if !text[begin..end].trim_start().starts_with('[') {
        return begin..end;
    }
    let next = text[end..].match_indices('\n').map(|(newline, _)| end + newline + 1);
    let next = next.into_iter().find(|next| text[*next..].trim_start_matches([' ', '\t']).starts_with('['));
    begin..next.unwrap_or(text.len())
}

/// Whether anything was there to be blanked.
fn blank(text: &mut String, broken: Option<Range<usize>>) -> bool {
    let Some(broken) = broken else { return false };
    let start = text.floor_char_boundary(broken.start);
    let end = text.ceil_char_boundary(broken.end);
    let blanks: String = text[start..end]
        .bytes()
        .map(|b| if b == b'\n' || b == b'\r' { char::from(b) } else { ' ' })
        .collect();
    let changed = blanks != text[start..end];
    text.replace_range(start..end, &blanks);
    changed
}

/// The places of every `key = value`; a value that was not closed reaches as far as the parser read it.
fn collect(table: &DeTable<'_>, statements: &mut Vec<Span>) {
    for (name, value) in table {
        // The value of `[header]` and of the tables above it begins at the header; that of `key = ` behind the key.
        if value.span().start >= name.span().end {
            statements.push(name.span().start..value.span().end);
        } else {
            inner(value, statements);
        }
    }
}

fn inner(value: &Spanned<DeValue<'_>>, statements: &mut Vec<Span>) {
    match value.get_ref() {
        DeValue::Table(table) => collect(table, statements),
        DeValue::Array(items) => items.iter().for_each(|item| inner(item, statements)),
        _ => {}
    }
}

fn fault(error: &toml::de::Error, text: &str) -> Fault {
    let span = error.span().unwrap_or(0..0);
    let found = text.get(span.clone()).unwrap_or("");
    let message = error.message();
    if message.starts_with("string values must be quoted") {
        return match found {
            "" => {
                Fault::new(&span, "the value is missing").help("write a value behind `=`, or remove the line")
            }
            found => Fault::new(&span, format!("{} is no value; text stands in quotes", quote(found)))
                .help(format!("write `{}`, if text is meant", toml::Value::from(found))),
        };
    }
    match message {
        "duplicate key" => Fault::new(&span, format!("{} stands twice in its table", quote(found)))
            .help("keep one of them; a table has one header, and each key stands in it once"),
        message => Fault::new(&span, message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<String> {
        let (mended, faults) = mend(text);
        assert_eq!(mended.len(), text.len());
        assert_eq!(mended.lines().count(), text.lines().count());
        Lines::new(text).locate(faults).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_sound_text_is_left_alone() {
        assert!(matches!(mend("a = 1\n[b]\nc = [1,\n2]\n"), (Cow::Borrowed(_), faults) if faults.is_empty()));
    }

    #[test]
    fn an_unclosed_list_is_one_problem_and_what_follows_is_read() {
        let text = "a = [1, 2\nb = 3\n[c]\nd = x\n";
        assert_eq!(
            said(text),
            [
                "2:1: missing comma between array elements, expected `,`",
                "4:5: `x` is no value; text stands in quotes"
            ]
        );
        assert_eq!(mend(text).0.trim(), "b = 3\n[c]");
    }

    #[test]
    fn a_broken_header_takes_its_section_along() {
        let text = "[a]\nb = 1\n[c\nd = 2\n[e]\nf = 3\n";
        assert_eq!(said(text), ["3:3: unclosed table, expected `]`"]);
        assert_eq!(
            mend(text).0.split_whitespace().collect::<Vec<_>>(),
            ["[a]", "b", "=", "1", "[e]", "f", "=", "3"]
        );
    }

    #[test]
    fn every_broken_line_is_told() {
        assert_eq!(
            said("a =\nfoo\n= 3\nb = \"\\q\"\nc = 1\nc = 2\n"),
            [
                "1:4: the value is missing",
                "2:4: key with no value, expected `=`",
                "3:1: unquoted keys cannot be empty, expected letters, numbers, `-`, `_`",
                "4:7: missing escaped value, expected `b`, `e`, `f`, `n`, `r`, `\\`, `\"`, `x`, `u`, `U`",
                "6:1: `c` stands twice in its table",
            ]
        );
    }
}
