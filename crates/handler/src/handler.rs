//! Plain async functions as handlers.

use std::future::{Future, Ready, ready};
use std::task::{self, Poll};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{Either, Map};
use poolwright_core::BoxError;
use serde::Serialize;
use tower::Service;

use crate::{Context, FromCall, Need, Output, TaskCall, TaskService};

/// What a task is given to: an async function of one payload and whatever else it needs, in any order.
///
/// `Args` only tells the implementations apart. What a function lacks is said where it lacks it: see [`Function`] for
/// its shape, [`Arguments`] for what it takes and [`IntoOutcome`] for what it gives.
#[diagnostic::on_unimplemented(
    message = "this is no task handler",
    label = "not an async function that a task can be given to",
    note = "a handler is `async fn(payload, ...) -> Result<T, E>`, with one payload and at most eight arguments",
    note = "a closure must be `Clone + Send + Sync` and own what it uses; write the types of its arguments"
)]
pub trait Handler<Args>: Clone + Send + Sync + 'static {
    /// Runs until the task has ended.
    type Future: Future<Output = Result<Output, BoxError>> + Send + 'static;

    /// The task types of its payload; empty for [`crate::Raw`].
    fn names() -> &'static [&'static str];

    /// What must be set before the start.
    fn needs() -> Vec<Need>;

    /// Reads its arguments and begins.
    fn call(self, call: TaskCall) -> Self::Future;
}

impl<F, Args> Handler<Args> for F
where
    F: Function<Args>,
    F::Future: Send + 'static,
    <F::Future as Future>::Output: IntoOutcome,
    Args: Arguments,
{
    type Future = Answer<F::Future>;

    fn names() -> &'static [&'static str] {
        Args::NAMES
    }

    fn needs() -> Vec<Need> {
        Args::needs()
    }

    fn call(self, call: TaskCall) -> Self::Future {
        // A handler that did not ask for the context should not keep it alive.
        match Args::from_call(&call.into_context()) {
            Ok(arguments) => {
                Either::Left(self.invoke(arguments).map(IntoOutcome::into_outcome as fn(_) -> _))
            }
            Err(error) => Either::Right(ready(Err(error))),
        }
    }
}

/// The future of a function: what it returns as the service answers, or at once why it could not be called.
type Answer<F> = Either<Map<F, fn(<F as Future>::Output) -> Outcome>, Ready<Outcome>>;

type Outcome = Result<Output, BoxError>;

/// An async function of one to eight arguments, whatever they are.
///
/// It has no bound on arguments or result, so that the compiler finds them out first and then says which is wrong.
#[diagnostic::on_unimplemented(
    message = "this is no task handler",
    label = "not an async function that a task can be given to",
    note = "a handler is `async fn(payload, ...) -> Result<T, E>`, with one payload and at most eight arguments",
    note = "a closure must be `Clone + Send + Sync` and own what it uses; write the types of its arguments"
)]
pub trait Function<Args>: Clone + Send + Sync + 'static {
    /// What it returns before it is awaited.
    type Future: Future;

    /// Calls it.
    fn invoke(self, arguments: Args) -> Self::Future;
}

/// The arguments of a handler: a tuple of things that can be had of a call, one of them the payload.
#[diagnostic::on_unimplemented(
    message = "a handler cannot take these arguments",
    note = "a handler takes one payload (`TaskType` or `Tasks`), and `Context`, `State<T>` or `Client` in any order"
)]
pub trait Arguments: Sized + Send {
    /// The task types of the payload.
    ///
    /// A handler without a payload, or with two, does not compile. (`cargo build` tells; `cargo check` does not get
    /// that far.)
    ///
    /// ```compile_fail,E0080
    /// # use poolwright_core::BoxError;
    /// # use poolwright_handler::{Context, service};
    /// async fn none(_: Context) -> Result<(), BoxError> {
    ///     Ok(())
    /// }
    /// let _ = service(none); // a handler takes one payload, this one takes none
    /// ```
    ///
    /// ```compile_fail,E0080
    /// # use poolwright_core::BoxError;
    /// # use poolwright_handler::{Raw, service};
    /// async fn two(_: Raw, _: Raw) -> Result<(), BoxError> {
    ///     Ok(())
    /// }
    /// let _ = service(two); // a handler takes one payload, this one takes several
    /// ```
    ///
    /// ```
    /// # use poolwright_core::BoxError;
    /// # use poolwright_handler::{Context, Raw, service};
    /// async fn one(_: Context, _: Raw) -> Result<(), BoxError> {
    ///     Ok(())
    /// }
    /// let _ = service(one);
    /// ```
    const NAMES: &'static [&'static str];

    /// What must be set before the start.
    fn needs() -> Vec<Need>;

    /// Makes them, in their order; the first that cannot be made is the error.
    ///
    /// # Errors
    /// That of [`FromCall::from_call`].
    fn from_call(cx: &Context) -> Result<Self, BoxError>;
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

#[diagnostic::do_not_recommend]
impl<T: Serialize> IntoOutput for T {
    fn into_output(self) -> Result<Output, BoxError> {
        // `()` and its like, which most handlers give, are found out without memory for their text.
        if size_of::<T>() == 0 && is_null(&self) {
            return Ok(Output::default());
        }
        let json = serde_json::to_vec(&self)?;
        Ok(Output { result: (json != b"null").then(|| Bytes::from(json)) })
    }
}

fn is_null(value: &impl Serialize) -> bool {
    let mut text = [0; 4];
    let mut room = &mut text[..];
    let fits = serde_json::to_writer(&mut room, value).is_ok() && room.is_empty();
    fits && text == *b"null"
}

/// The handler as a tower service.
pub fn service<H: Handler<Args>, Args: 'static>(handler: H) -> TaskService {
    // Asked here as well, so that no way to run a handler goes round the compile-time check of its payload.
    let _ = H::names();
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
    type Future = H::Future;

    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: TaskCall) -> Self::Future {
        self.handler.clone().call(call)
    }
}

/// The task types of the one payload among the arguments.
const fn names_of_payload(arguments: &[Option<&'static [&'static str]>]) -> &'static [&'static str] {
    let mut found = None;
    let mut at = 0;
    while at < arguments.len() {
        if arguments[at].is_some() {
            assert!(found.is_none(), "a handler takes one payload, this one takes several");
            found = arguments[at];
        }
        at += 1;
    }
    match found {
        Some(names) => names,
        None => panic!("a handler takes one payload, this one takes none"),
    }
}

macro_rules! handler {
    ($($arg:ident),+) => {
        impl<F, Fut, $($arg),+> Function<($($arg,)+)> for F
        where
            F: FnOnce($($arg),+) -> Fut + Clone + Send + Sync + 'static,
            Fut: Future,
        {
            type Future = Fut;

            #[allow(non_snake_case, reason = "one name serves as type and as variable")]
            fn invoke(self, ($($arg,)+): ($($arg,)+)) -> Fut {
                self($($arg),+)
            }
        }

        impl<$($arg: FromCall),+> Arguments for ($($arg,)+) {
            const NAMES: &'static [&'static str] = names_of_payload(&[$($arg::PAYLOAD),+]);

            fn needs() -> Vec<Need> {
                [$($arg::need()),+].into_iter().flatten().collect()
            }

            fn from_call(cx: &Context) -> Result<Self, BoxError> {
                Ok(($($arg::from_call(cx)?,)+))
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

#[cfg(test)]
mod tests {
    use super::*;

    const PAYLOAD: Option<&[&str]> = Some(&["a", "b"]);

    #[test]
    fn the_one_payload_is_found_wherever_it_stands() {
        assert_eq!(names_of_payload(&[PAYLOAD]), ["a", "b"]);
        assert_eq!(names_of_payload(&[None, PAYLOAD, None]), ["a", "b"]);
    }

    #[test]
    #[should_panic(expected = "this one takes none")]
    fn no_payload_is_refused() {
        names_of_payload(&[None, None]);
    }

    #[test]
    #[should_panic(expected = "this one takes several")]
    fn a_second_payload_is_refused() {
        names_of_payload(&[PAYLOAD, None, Some(&[])]);
    }
}
