//! What the person at the terminal sees while a run goes on.

use std::convert::Infallible;
use std::io::{IsTerminal, Write};

use poolwright::Running;
use poolwright::core::Timestamp;

use crate::desk::Desk;

mod bar;
mod lines;
pub mod text;

/// What is shown of a run, on stderr.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum View {
    /// Every pool with its slots, drawn in place; on a stderr that is no terminal as [`View::Lines`].
    #[default]
    Bar,
    /// A line when something changed, at most one a second.
    Lines,
    /// Nothing.
    Quiet,
}

/// Says something once that is no progress.
pub(crate) fn note(view: View, what: &str) {
    if view != View::Quiet {
        let line = format!("note: {}\n", text::plain(what));
        // Where nobody reads, nothing is left to do.
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    }
}

/// Shows until it is dropped.
pub(crate) async fn show(view: View, running: &Running, desk: &Desk, started: Timestamp) -> Infallible {
    match view {
        View::Bar if std::io::stderr().is_terminal() => bar::show(running, desk, started).await,
        View::Bar | View::Lines => lines::show(running, desk, started).await,
        View::Quiet => std::future::pending().await,
    }
}

/// Tasks that wait in all queues, where the store says so.
async fn waiting(running: &Running) -> Option<u64> {
    let queues = running.inspector().queues().await.ok()?;
    Some(queues.iter().map(|queue| queue.pending + queue.scheduled + queue.retry).sum())
}
