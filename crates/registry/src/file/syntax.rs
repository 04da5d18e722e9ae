//! Mistakes of TOML itself, told as one problem for each cause.
//!
//! A parser that goes on after a mistake reports its consequences too: one unclosed list swallows the lines behind it.
//! Of all that is said about one `key = value`, or about one line outside of any, the first is the cause.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::node::Span;
use crate::problem::{Fault, Lines};
use crate::suggest::quote;

/// The causes, in the order of the file.
pub(crate) fn faults(tree: &DeTable<'_>, mut errors: Vec<toml::de::Error>, text: &str) -> Vec<Fault> {
    let mut statements = Vec::new();
    collect(tree, &mut statements);
    let lines = Lines::new(text);
    let start = |error: &toml::de::Error| error.span().map_or(0, |span| span.start);
    errors.sort_by_key(start);
    let (mut seen, mut faults) = (Vec::new(), Vec::new());
    for error in &errors {
        let at = start(error);
        let statement = statements.iter().find(|span| (span.start..=span.end).contains(&at));
        let cause = statement.map_or_else(|| (false, lines.line(at)), |span| (true, span.start));
        if !seen.contains(&cause) {
            seen.push(cause);
            faults.push(fault(error, text));
        }
    }
    faults
}

/// The places of every `key = value`; a value that was not closed reaches as far as the parser read it.
fn collect(table: &DeTable<'_>, statements: &mut Vec<Span>) {
    for (name, value) in table {
        // The value of `[header]` and of the tables above it begins at the header; that of `key = ` behind the key.
        if value.span().start >= name.span().end {
            statements.push(name.span().start..value.span().end);
            continue;
        }
        inner(value, statements);
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
