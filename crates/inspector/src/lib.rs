//! Sees and changes the queues of a store: what an operator and a dashboard ask.
//!
//! | File | Answers |
//! | --- | --- |
//! | `inspector` | pages of tasks, one task, tasks of a subject or scope |
//! | `queues`, `pools` | numbers, pauses, history; capacity and heartbeats |
//! | `act` | run now, archive, delete, reschedule, pause, and the same for many |
//! | `cancel` | the end of what waits or runs |
//! | `letters` | dead letters: list, show, replay, delete |
//! | `action`, `view`, `which` | what is allowed, what is shown, how a task is named |
//!
//! Queues are named as the file or as the store calls them. Views are for screens: of a payload they show what the file
//! allows and no more. Programs that need everything ask for `raw` records.
//!
//! Invariant: all state is the store's; an inspector keeps nothing and may be made and dropped at will.

mod act;
mod action;
mod cancel;
mod error;
mod inspector;
mod letters;
mod pools;
mod queues;
mod times;
mod view;
mod which;

pub use action::Action;
pub use cancel::Cancelled;
pub use error::Error;
pub use inspector::{FoundTask, FoundTasks, PAGE_SIZE, PAGE_SIZE_MAX, TaskInspector, TaskPage};
pub use letters::{LetterListing, LetterView, Letters, REPLAY_OF, ReplayReport, ReplayView};
pub use pools::{PoolView, RunningView, ServerView};
pub use queues::{DayView, QueueView};
pub use view::{ProgressView, TaskView};
pub use which::Which;
