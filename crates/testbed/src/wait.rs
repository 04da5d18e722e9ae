//! Waits for states: looks, and looks again soon, until the state is there or patience ends.
//!
//! Invariant: every wait of this crate is bounded, and what a wait that failed saw last is told.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use tokio::time;

use crate::error::Error;

/// Longer than anything here takes on a busy machine; only a failing test waits so long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks: the first come at once, later ones cost the machine less.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// Looks until `look` answers `Ok`; an `Err` says what was found instead.
///
/// An `async` closure does, as long as it borrows nothing mutably.
///
/// ```
/// # async fn a_test() -> Result<(), poolwright_testbed::Error> {
/// let server = poolwright_testbed::RedisServer::start().await?;
/// let member = poolwright_testbed::until("a member", async || {
///     let member = server.command(&["SRANDMEMBER", "set"]).await.expect("the server runs");
///     member.text().map(str::to_owned).ok_or("nobody yet")
/// });
/// # drop(member);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `Overdue` with what the last look found.
pub async fn until<T, E: fmt::Display, Look: Future<Output = Result<T, E>>>(
    what: impl Into<String>,
    mut look: impl FnMut() -> Look,
) -> Result<T, Error> {
    let mut last = "no look came to its end".to_owned();
    let looks = async {
        let mut pause = PAUSE_MIN;
        loop {
            match look().await {
                Ok(state) => return state,
                Err(found) => last = found.to_string(),
            }
            time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    };
    let outcome = time::timeout(PATIENCE, looks).await;
    outcome.map_err(|_| Error::Overdue { what: what.into(), patience_secs: PATIENCE.as_secs(), last })
}

/// Gives one step its time.
pub(crate) async fn at_most<T>(what: String, step: impl Future<Output = T>) -> Result<T, Error> {
    let last = "nothing".to_owned();
    let outcome = time::timeout(PATIENCE, step).await;
    outcome.map_err(|_| Error::Overdue { what, patience_secs: PATIENCE.as_secs(), last })
}
