//! The request and the response of the tower service that one attempt passes through.

use bytes::Bytes;
use poolwright_core::BoxError;
use tower::util::BoxCloneSyncService;

use crate::Context;

/// One attempt on its way through the layers to its handler.
///
/// Cloning is cheap: it shares the [`Context`].
#[derive(Debug, Clone)]
pub struct TaskCall {
    cx: Context,
}

impl TaskCall {
    /// A call with this context.
    #[must_use]
    pub const fn new(cx: Context) -> Self {
        Self { cx }
    }

    /// What is known about the attempt.
    #[must_use]
    pub const fn context(&self) -> &Context {
        &self.cx
    }

    /// The context, when the call itself is done with.
    #[must_use]
    pub fn into_context(self) -> Context {
        self.cx
    }
}

/// What a handler gave.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Output {
    /// Bytes to keep with the completed task; none keeps what was stored while it ran.
    pub result: Option<Bytes>,
}

/// A handler, or a handler in its layers, behind one type.
pub type TaskService = BoxCloneSyncService<TaskCall, Output, BoxError>;
