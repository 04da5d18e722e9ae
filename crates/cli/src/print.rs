//! Prints: results on stdout, everything else on stderr.
//!
//! Invariant: a reader that has gone away (`| head`) is no error and stops no work; the rest of the result is dropped.

use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Stdout, Write};

use serde::Serialize;

use crate::failure::Failure;
use crate::text;

/// Where results go.
#[derive(Debug)]
pub(crate) struct Output {
    is_json: bool,
    paint: Paint,
    stdout: BufWriter<Stdout>,
    is_closed: bool,
}

/// Colours, or none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint(pub(crate) bool);

/// What a text should be taken as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Tone {
    #[default]
    Plain,
    /// A heading.
    Head,
    /// Of less interest.
    Faint,
    /// Somebody should look at it.
    Alarm,
    /// Somebody may want to look at it.
    Notice,
}

impl Output {
    /// Colours only where a person looks.
    pub(crate) fn new(is_json: bool) -> Self {
        let stdout = io::stdout();
        let paint = Paint(is_coloured(&stdout));
        Self { is_json, paint, stdout: BufWriter::new(stdout), is_closed: false }
    }

    pub(crate) const fn is_json(&self) -> bool {
        self.is_json
    }

    /// The result of a command: the value as JSON where it was asked for, else the text made of it. What is said after
    /// it on stderr comes after it.
    pub(crate) fn result<T: Serialize + ?Sized>(
        &mut self,
        value: &T,
        text: impl FnOnce(Paint) -> String,
    ) -> Result<(), Failure> {
        let text = match self.is_json {
            true => json(value, true)? + "\n",
            false => text(self.paint),
        };
        self.write(&text)?;
        self.flush()
    }

    /// Opens a list whose elements come one by one.
    pub(crate) fn begin_list(&mut self) -> Result<List, Failure> {
        if self.is_json {
            self.write("[")?;
        }
        Ok(List { is_empty: true })
    }

    /// One element of a list; text gets its line end.
    pub(crate) fn element<T: Serialize>(
        &mut self,
        list: &mut List,
        value: &T,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        let text = match (self.is_json, list.is_empty) {
            (true, true) => format!("\n{}", json(value, false)?),
            (true, false) => format!(",\n{}", json(value, false)?),
            (false, _) => text() + "\n",
        };
        list.is_empty = false;
        self.write(&text)
    }

    /// Closes a list.
    pub(crate) fn end_list(&mut self, list: List) -> Result<(), Failure> {
        match (self.is_json, list.is_empty) {
            (false, _) => Ok(()),
            (true, true) => self.write("]\n"),
            (true, false) => self.write("\n]\n"),
        }
    }

    /// Sends on what was held back.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        let done = self.stdout.flush();
        self.settle(done)
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        if self.is_closed {
            return Ok(());
        }
        let done = self.stdout.write_all(text.as_bytes());
        self.settle(done)
    }

    fn settle(&mut self, done: io::Result<()>) -> Result<(), Failure> {
        match done {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(())
            }
            other => other.map_err(|error| Failure::Failed(format!("the result cannot be written: {error}"))),
        }
    }
}

/// A list that is being printed.
#[derive(Debug)]
#[must_use = "a list is closed by `end_list`"]
pub(crate) struct List {
    is_empty: bool,
}

impl Paint {
    /// The text in the colours of its tone.
    pub(crate) fn on(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            _ if !self.0 || text.is_empty() => return text.to_owned(),
            Tone::Plain => return text.to_owned(),
            Tone::Head => "1",
            Tone::Faint => "2",
            Tone::Alarm => "31",
            Tone::Notice => "33",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// Something that its reader should know, and that is no result.
pub(crate) fn note(text: impl Display) {
    say("note", text);
}

/// Something that its reader should probably change.
pub(crate) fn warning(text: impl Display) {
    say("warning", text);
}

/// Whether colours are welcome there: it is a terminal, and nobody forbade them.
pub(crate) fn is_coloured(stream: &impl IsTerminal) -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    stream.is_terminal() && !is_set("NO_COLOR") && !is_dumb
}

fn say(what: &str, text: impl Display) {
    // A closed stderr must not stop the work.
    let _ = io::stderr().write_all(text::harmless(&format!("{what}: {text}")).as_bytes());
}

fn json<T: Serialize + ?Sized>(value: &T, is_pretty: bool) -> Result<String, Failure> {
    let text = if is_pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    text.map_err(|why| Failure::Failed(format!("the result does not encode as JSON: {why}")))
}
