//! A test kit: handlers run inline, and a whole orchestrator in memory whose clock a test moves.
//!
//! One handler, no store:
//!
//! ```
//! use poolwright::prelude::*;
//! use poolwright::testing;
//!
//! #[derive(Serialize, Deserialize, TaskType)]
//! #[task("word:count")]
//! struct Count { text: String }
//!
//! async fn count(task: Count) -> Result<usize, BoxError> {
//!     Ok(task.text.split_whitespace().count())
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let output = testing::run(count, &Count { text: "to be or not".into() }).await?;
//! assert_eq!(output.result.as_deref(), Some(&b"4"[..]));
//! # Ok::<(), BoxError>(()) })?;
//! # Ok::<(), BoxError>(())
//! ```
//!
//! The whole program, wired as in production, see [`TestQueue`]. Contexts by hand (a pool, a cancel token, states, a clock)
//! come from [`Context::builder`] and go to [`run_in`].

mod drain;
mod queue;
mod report;

use poolwright_core::BoxError;
use poolwright_handler::{Handler, Output, Payload, TaskCall, service};
use tower::ServiceExt;

pub use drain::Drained;
pub use poolwright_core::clock::ManualClock;
pub use poolwright_handler::Context;
pub use poolwright_handler::testing::{ContextBuilder, Recorder, claimed, task};
pub use queue::{START, TestQueue};

/// Runs a handler once, here and now, with this payload and no states. A panic of the handler is the test's.
///
/// # Errors
/// What the handler returns; when the payload does not encode, or is not the handler's.
pub async fn run<H, Args, T>(handler: H, payload: &T) -> Result<Output, BoxError>
where
    H: Handler<Args>,
    Args: 'static,
    T: Payload,
{
    let task = task(payload)?;
    run_in(handler, Context::builder(task).build()).await
}

/// Runs a handler once, here and now, in this context.
///
/// # Errors
/// What the handler returns.
pub async fn run_in<H, Args>(handler: H, cx: Context) -> Result<Output, BoxError>
where
    H: Handler<Args>,
    Args: 'static,
{
    service(handler).oneshot(TaskCall::new(cx)).await
}
