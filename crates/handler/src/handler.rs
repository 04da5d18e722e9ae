//! Plain async functions as handlers.

use std::future::Future;
use std::task::{self, Poll};

use bytes::Bytes;
use poolwright_core::{BoxError, BoxFuture};
use serde::Serialize;
use tower::Service;

use crate::{FromCall, Need, Output, TaskCall, TaskService};

/// An async function of one payload and whatever else it needs, in any order.
///
/// `Args` only tells the implementations apart.
#[diagnostic::on_unimplemented(
    message = "this is no task handler",
    label = "not an async function that a task can be given to",
    note = "a handler is an `async fn` that returns `Result<T, E>`: `T` serializes, `E` turns into `BoxError` (anyhow does)",
    note = "it takes one payload (`TaskType` or `Tasks`), and `Context`, `State<T>` or `Client` in any order, at most eight arguments",
    note = "its future must be `Send`: hold no `Rc` or lock guard across an `.await`"
)]
pub trait Handler<Args>: Clone + Send + Sync + 'static {
    /// The task types of its payload; empty for [`crate::Raw`].
    fn names() -> &'static [&'static str];

    /// What must be set before the start.
    fn needs() -> Vec<Need>;

    /// Runs it.
    fn call(self, call: TaskCall) -> BoxFuture<'static, Result<Output, BoxError>>;
}

/// What a handler may return.
#[diagnostic::on_unimplemented(
    message = "a handler cannot return `{Self}`",
    label = "not a `Result` that says how the task ended",
    note = "return `Result<(), BoxError>`, or `Result<T, E>` where `T: Serialize` and `E: Into<BoxError>`"
)]
pub trait IntoOutcome {
    /// As the service answers.
    ///
    /// # Errors
    /// The handler's own.
    fn into_outcome(self) -> Result<Output, BoxError>;
}

impl<O: IntoOutput, E: Into<BoxError>> IntoOutcome for Result<O, E> {
    fn into_outcome(self) -> Result<Output, BoxError> {
        self.map_err(Into::into)?.into_output()
    }
}

/// What a handler may give when it succeeds: anything that serializes (kept as JSON; `()` and other nulls keep
/// nothing), or an [`Output`] with bytes of its own.
#[diagnostic::on_unimplemented(
    message = "a handler's result `{Self}` cannot be kept",
    label = "does not implement `Serialize`",
    note = "return `()` to keep nothing, or `Output` to keep bytes of your own"
)]
pub trait IntoOutput {
    /// As the service answers.
    ///
    /// # Errors
    /// When it does not serialize.
    fn into_output(self) -> Result<Output, BoxError>;
}

impl IntoOutput for Output {
    fn into_output(self) -> Result<Output, BoxError> {
        Ok(self)
    }
}

impl<T: Serialize> IntoOutput for T {
    fn into_output(self) -> Result<Output, BoxError> {
        let json = serde_json::to_vec(&self)?;
        Ok(Output { result: (json != b"null").then(|| Bytes::from(json)) })
    }
}

/// The handler as a tower service.
pub fn service<H: Handler<Args>, Args: 'static>(handler: H) -> TaskService {
    TaskService::new(Leaf { handler, args: std::marker::PhantomData::<fn(Args)> })
}

struct Leaf<H, Args> {
    handler: H,
    args: std::marker::PhantomData<fn(Args)>,
}

impl<H: Clone, Args> Clone for Leaf<H, Args> {
    fn clone(&self) -> Self {
        Self { handler: self.handler.clone(), args: self.args }
    }
}

impl<H: Handler<Args>, Args: 'static> Service<TaskCall> for Leaf<H, Args> {
    type Response = Output;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Output, BoxError>>;

    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: TaskCall) -> Self::Future {
        self.handler.clone().call(call)
    }
}

const fn payloads(arguments: &[Option<&'static [&'static str]>]) -> usize {
    let (mut count, mut at) = (0, 0);
    while at < arguments.len() {
        if arguments[at].is_some() {
            count += 1;
        }
        at += 1;
    }
    count
}

const fn first(arguments: &[Option<&'static [&'static str]>]) -> &'static [&'static str] {
    let mut at = 0;
    while at < arguments.len() {
        if let Some(names) = arguments[at] {
            return names;
        }
        at += 1;
    }
    &[]
}

macro_rules! handler {
    ($($arg:ident),+) => {
        impl<F, Fut, R, $($arg),+> Handler<($($arg,)+)> for F
        where
            F: FnOnce($($arg),+) -> Fut + Clone + Send + Sync + 'static,
            Fut: Future<Output = R> + Send + 'static,
            R: IntoOutcome,
            $($arg: FromCall + 'static,)+
        {
            fn names() -> &'static [&'static str] {
                const {
                    let arguments = [$($arg::PAYLOAD),+];
                    assert!(payloads(&arguments) != 0, "a handler takes one payload, this one takes none");
                    assert!(payloads(&arguments) == 1, "a handler takes one payload, this one takes several");
                    first(&arguments)
                }
            }

            fn needs() -> Vec<Need> {
                [$($arg::need()),+].into_iter().flatten().collect()
            }

            #[allow(non_snake_case, reason = "one name serves as type and as variable")]
            fn call(self, call: TaskCall) -> BoxFuture<'static, Result<Output, BoxError>> {
                Box::pin(async move {
                    let cx = call.into_context();
                    $(let $arg = $arg::from_call(&cx)?;)+
                    drop(cx);
                    self($($arg),+).await.into_outcome()
                })
            }
        }
    };
}

handler!(A1);
handler!(A1, A2);
handler!(A1, A2, A3);
handler!(A1, A2, A3, A4);
handler!(A1, A2, A3, A4, A5);
handler!(A1, A2, A3, A4, A5, A6);
handler!(A1, A2, A3, A4, A5, A6, A7);
handler!(A1, A2, A3, A4, A5, A6, A7, A8);
