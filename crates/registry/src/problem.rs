//! What is wrong with a file, and where.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use serde::Serialize;

/// One mistake in the file: where it stands, what it is and how to cure it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Problem {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong, in one line.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
    /// Another place that belongs to it, such as the first of two owners.
    pub related: Option<Related>,
    #[serde(skip)]
    pub(crate) span: Range<usize>,
}

/// A second place that a problem is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Related {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What stands there.
    pub note: String,
    #[serde(skip)]
    pub(crate) span: Range<usize>,
}

/// `12:1: unknown key ...`
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

/// Something that does not stop a process but that its operator should read: an override that was not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Warning {
    /// What happened and what is used instead, in one line.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// A problem by its bytes; [`Lines::locate`] makes a [`Problem`] of it.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    pub(crate) related: Option<(Range<usize>, String)>,
}

impl Fault {
    pub(crate) fn new(span: &Range<usize>, message: impl Into<String>) -> Self {
        Self { span: span.clone(), message: message.into(), help: None, related: None }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        let help = help.into();
        self.help = (!help.is_empty()).then_some(help);
        self
    }

    pub(crate) fn related(mut self, span: &Range<usize>, note: impl Into<String>) -> Self {
        self.related = Some((span.clone(), note.into()));
        self
    }
}

/// Finds lines and columns in a text.
#[derive(Debug)]
pub(crate) struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    /// The line of a byte, from 1.
    pub(crate) fn line(&self, byte: usize) -> usize {
        self.starts.partition_point(|start| *start <= byte)
    }

    /// The problems in the order of the file, each once.
    pub(crate) fn locate(&self, mut faults: Vec<Fault>) -> Vec<Problem> {
        faults.sort_by_key(|fault| (fault.span.start, fault.span.end));
        // What is wrong with a default is found again with each type that takes it.
        let mut seen = HashSet::new();
        faults.retain(|fault| seen.insert((fault.span.clone(), fault.message.clone())));
        faults.into_iter().map(|fault| self.problem(fault)).collect()
    }

    fn problem(&self, fault: Fault) -> Problem {
        let span = self.within_a_line(fault.span);
        let (line, column) = self.place(span.start);
        let related = fault.related.map(|(span, note)| {
            let span = self.within_a_line(span);
            let (line, column) = self.place(span.start);
            Related { line, column, note, span }
        });
        Problem { line, column, message: fault.message, help: fault.help, related, span }
    }

    fn place(&self, byte: usize) -> (usize, usize) {
        let line = self.line(byte);
        (line, self.text[self.starts[line - 1]..byte].chars().count() + 1)
    }

    /// The part of the span on its first line, on character boundaries: underlining a whole table helps nobody.
    fn within_a_line(&self, span: Range<usize>) -> Range<usize> {
        // A parser that gives up at the end of the file points behind its last line end; show the line instead.
        let last = self.text.trim_end_matches(['\n', '\r']).len();
        let start = self.text.floor_char_boundary(span.start.min(last));
        let end = self.text.ceil_char_boundary(span.end.clamp(start, self.text.len()));
        let line = self.text[start..end].lines().next().unwrap_or("");
        start..start + line.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_characters_from_one() {
        let text = "é = 1\nab = [\n 2]\n";
        let lines = Lines::new(text);
        let problem = |span: Range<usize>| lines.locate(vec![Fault::new(&span, "x")]).remove(0);
        let place = |span| {
            let problem = problem(span);
            (problem.line, problem.column, text[problem.span].to_owned())
        };
        assert_eq!(place(0..2), (1, 1, "é".into()));
        assert_eq!(place(5..6), (1, 5, "1".into()));
        assert_eq!(place(12..17), (2, 6, "[".into()));
        assert_eq!(place(1..2), (1, 1, "é".into()));
        assert_eq!(place(99..99), (3, 4, "".into()));
        assert_eq!(Lines::new("").locate(vec![Fault::new(&(0..0), "x")])[0].line, 1);
    }

    #[test]
    fn problems_come_in_the_order_of_the_file_and_once() {
        let lines = Lines::new("a\nb\nc\n");
        let found = lines.locate(vec![
            Fault::new(&(4..5), "late"),
            Fault::new(&(0..1), "early"),
            Fault::new(&(0..1), "early"),
        ]);
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), ["1:1: early", "3:1: late"]);
    }
}
