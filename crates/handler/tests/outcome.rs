//! What a handler may return, and what is kept of it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use poolwright_core::error::describe;
use poolwright_core::{BoxError, Class, Next, TaskError};
use poolwright_derive::TaskType;
use poolwright_handler::{Context, Handler, Output, TaskCall, service, testing};
use serde::{Deserialize, Serialize};
use tower::ServiceExt;

#[derive(Serialize, Deserialize, TaskType)]
#[task(name = "noop", crate = "poolwright_handler")]
struct Noop;

async fn run<H: Handler<Args>, Args: 'static>(handler: H) -> Result<Output, BoxError> {
    let cx = Context::builder(testing::task(&Noop).unwrap()).build();
    service(handler).oneshot(TaskCall::new(cx)).await
}

async fn next<H: Handler<Args>, Args: 'static>(handler: H) -> (Next, String) {
    let error = run(handler).await.expect_err("the handler fails");
    (Next::of(&*error), describe(&*error))
}

fn plain(class: Class) -> Next {
    Next { class, after: None }
}

#[tokio::test]
async fn what_serializes_is_kept_as_json_and_nothing_keeps_nothing() {
    #[derive(Serialize)]
    struct Counts {
        pages: u32,
    }
    let result = run(|_: Noop| async { Ok::<_, BoxError>(Counts { pages: 3 }) }).await.unwrap().result;
    assert_eq!(result.as_deref(), Some(&b"{\"pages\":3}"[..]));
    assert_eq!(run(|_: Noop| async { Ok::<_, BoxError>(()) }).await.unwrap(), Output::default());
    assert_eq!(run(|_: Noop| async { Ok::<_, BoxError>(None::<u8>) }).await.unwrap(), Output::default());
    let bytes = Output { result: Some(Bytes::from_static(b"\xff")) };
    let same = bytes.clone();
    assert_eq!(run(move |_: Noop| async { Ok::<_, BoxError>(same) }).await.unwrap(), bytes);
}

#[tokio::test]
async fn what_takes_no_room_but_says_something_is_kept() {
    #[derive(Serialize)]
    enum Verdict {
        Fine,
    }
    #[derive(Serialize)]
    struct Nil;
    #[derive(Serialize)]
    struct Empty {}
    let fine = run(|_: Noop| async { Ok::<_, BoxError>(Verdict::Fine) }).await.unwrap();
    assert_eq!(fine.result.as_deref(), Some(&b"\"Fine\""[..]));
    let empty = run(|_: Noop| async { Ok::<_, BoxError>(Empty {}) }).await.unwrap();
    assert_eq!(empty.result.as_deref(), Some(&b"{}"[..]));
    assert_eq!(run(|_: Noop| async { Ok::<_, BoxError>(Nil) }).await.unwrap(), Output::default());
}

#[tokio::test]
async fn a_result_that_does_not_serialize_is_an_error() {
    let by_tuple = std::collections::BTreeMap::from([((1, 2), 3)]);
    let (next, text) = next(move |_: Noop| async { Ok::<_, BoxError>(by_tuple) }).await;
    assert_eq!(next, plain(Class::Transient));
    assert_eq!(text, "key must be a string");
}

#[tokio::test]
async fn any_error_is_transient() {
    async fn io(_: Noop) -> std::io::Result<()> {
        Err(std::io::Error::other("disk on fire"))
    }
    async fn text(_: Noop) -> Result<(), &'static str> {
        Err("just words")
    }
    assert_eq!(next(io).await, (plain(Class::Transient), "disk on fire".to_owned()));
    assert_eq!(next(text).await, (plain(Class::Transient), "just words".to_owned()));
}

#[tokio::test]
async fn a_task_error_keeps_its_class_through_anyhow() {
    async fn bare(_: Noop) -> anyhow::Result<()> {
        Err(TaskError::permanent("no such page"))?
    }
    async fn with_context(_: Noop) -> anyhow::Result<()> {
        Err(TaskError::rate_limited(Duration::from_secs(9), "slow down")).context("asking the model")?
    }
    async fn deep(_: Noop) -> anyhow::Result<()> {
        let inner: anyhow::Result<()> = Err(TaskError::lock_conflict("taken").into());
        inner.context("locking the page").context("writing the wiki")
    }
    async fn none(_: Noop) -> anyhow::Result<()> {
        anyhow::bail!("plain")
    }
    assert_eq!(next(bare).await, (plain(Class::Permanent), "no such page".to_owned()));
    let slow = Next { class: Class::RateLimited, after: Some(Duration::from_secs(9)) };
    assert_eq!(next(with_context).await, (slow, "asking the model: slow down".to_owned()));
    let text = "writing the wiki: locking the page: taken";
    assert_eq!(next(deep).await, (plain(Class::LockConflict), text.to_owned()));
    assert_eq!(next(none).await, (plain(Class::Transient), "plain".to_owned()));
}
