//! Prints a line when something changed, for logs and pipes.

use std::convert::Infallible;
use std::io::Write;
use std::time::Duration;

use poolwright::Running;
use poolwright::core::clock::SystemClock;
use poolwright::core::{Clock, Timestamp};
use tokio::time::sleep;

use super::{text, waiting};
use crate::desk::Desk;

/// Between two lines, at least.
const PAUSE: Duration = Duration::from_secs(1);

/// Prints until it is dropped.
pub(super) async fn show(running: &Running, desk: &Desk, started: Timestamp) -> Infallible {
    let labels = text::labels(running.topology(), &running.status());
    let mut last = running.status();
    loop {
        // The first line comes after a second as well: a short run needs none.
        sleep(PAUSE).await;
        let status = running.until(|status| *status != last).await;
        let took = SystemClock.now().since(started);
        let whole = text::whole(&status, took, waiting(running).await);
        let line = format!("{whole}  {}  {}\n", text::busy(&labels, &status), text::plain(&desk.at()));
        // Where nobody reads, nothing is left to do.
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
        last = status;
    }
}
