//! What one attempt is: the request of the tower service, extractors and the handler trait.
//!
//! ```text
//!   worker ──► TaskCall(Context) ──► layers ──► handler service ──► FromCall for each argument ──► your function
//!                    │                                                                                  │
//!                    └── task, cancel token, states, extensions, reporter            Result<impl Serialize, E> ──► Output
//! ```
//!
//! ```
//! use poolwright_core::BoxError;
//! use poolwright_handler::{Context, State, TaskType};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Resize { path: String, width: u32 }
//! impl TaskType for Resize { const NAME: &'static str = "image:resize"; }
//!
//! async fn resize(task: Resize, cx: Context, State(root): State<String>) -> Result<u32, BoxError> {
//!     cx.checkpoint()?;
//!     assert!(!root.is_empty() && !task.path.is_empty());
//!     Ok(task.width) // kept as the task's result when it has a retention
//! }
//! let _ = poolwright_handler::service(resize);
//! ```

pub mod background;
pub mod call;
pub mod context;
pub mod extract;
pub mod handler;
pub mod payload;
pub mod report;
pub mod states;
pub mod testing;

/// No API: it changes together with the derives.
#[doc(hidden)]
#[path = "generated.rs"]
pub mod __private;

pub use call::{Output, TaskCall, TaskService};
pub use context::{Common, Context, Parts};
pub use extract::{FromCall, Need, State};
pub use handler::{Arguments, Function, Handler, IntoOutcome, IntoOutput, service};
pub use payload::{Payload, Raw, TaskType};
pub use report::{NoReport, Report};
pub use states::States;
pub use testing::ContextBuilder;
