//! What a handler may take, in which order, and what is said when it cannot be had.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::any::TypeId;

use poolwright_core::{BoxError, Class, Next, TaskRecord};
use poolwright_derive::{TaskType, Tasks};
use poolwright_handler::{Context, FromCall, Handler, Need, Output, Raw, State, TaskCall, service, testing};
use serde::{Deserialize, Serialize};
use tower::ServiceExt;

#[derive(Debug, Serialize, Deserialize, TaskType)]
#[task("image:resize", crate = "poolwright_handler")]
struct Resize {
    path: String,
    width: u32,
}

#[derive(Tasks)]
#[task(crate = "poolwright_handler")]
enum Job {
    SendEmail { to: String },
    GenerateSitemap,
}

fn resize() -> TaskRecord {
    testing::task(&Resize { path: "a.png".into(), width: 80 }).unwrap()
}

fn names<H: Handler<Args>, Args>(_: H) -> &'static [&'static str] {
    H::names()
}

fn needs<H: Handler<Args>, Args>(_: H) -> Vec<Need> {
    H::needs()
}

async fn run<H: Handler<Args>, Args: 'static>(handler: H, task: TaskRecord) -> Result<Output, BoxError> {
    let cx = Context::builder(task).state(7_u8).state("root".to_owned()).build();
    service(handler).oneshot(TaskCall::new(cx)).await
}

async fn value<H: Handler<Args>, Args: 'static>(handler: H, task: TaskRecord) -> serde_json::Value {
    let output = run(handler, task).await.expect("the handler succeeds");
    serde_json::from_slice(&output.result.expect("it returns something")).unwrap()
}

#[tokio::test]
async fn arguments_come_in_any_order() {
    async fn alone(task: Resize) -> Result<u32, BoxError> {
        Ok(task.width)
    }
    async fn first(task: Resize, cx: Context, State(n): State<u8>) -> Result<(u32, String, u8), BoxError> {
        Ok((task.width, cx.task_id().to_string(), n))
    }
    async fn middle(cx: Context, task: Resize, State(n): State<u8>) -> Result<(u32, String, u8), BoxError> {
        Ok((task.width, cx.task_id().to_string(), n))
    }
    async fn last(State(n): State<u8>, cx: Context, task: Resize) -> Result<(u32, String, u8), BoxError> {
        Ok((task.width, cx.task_id().to_string(), n))
    }
    assert_eq!(value(alone, resize()).await, serde_json::json!(80));
    let all = serde_json::json!([80, "test", 7]);
    assert_eq!(value(first, resize()).await, all);
    assert_eq!(value(middle, resize()).await, all);
    assert_eq!(value(last, resize()).await, all);
}

#[tokio::test]
async fn eight_arguments_and_closures_will_do() {
    type N = State<u8>;
    let handler = |a: N, b: N, c: N, d: N, e: N, f: N, root: State<String>, task: Resize| async move {
        let sum = [a, b, c, d, e, f].iter().map(|state| u32::from(state.0)).sum::<u32>();
        Ok::<_, BoxError>(format!("{}/{}: {}", root.0, task.path, sum + task.width))
    };
    assert_eq!(value(handler, resize()).await, "root/a.png: 122");
}

#[test]
fn a_handler_tells_its_task_types_and_what_it_needs() {
    async fn of_struct(_: Resize, _: State<u8>, _: Context, _: State<String>) -> Result<(), BoxError> {
        Ok(())
    }
    async fn of_enum(_: Job) -> Result<(), BoxError> {
        Ok(())
    }
    async fn of_any(_: Raw) -> Result<(), BoxError> {
        Ok(())
    }
    assert_eq!(names(of_struct), ["image:resize"]);
    assert_eq!(names(of_enum), ["send_email", "generate_sitemap"]);
    assert!(names(of_any).is_empty());
    assert_eq!(needs(of_struct), [Need::state::<u8>(), Need::state::<String>()]);
    assert_eq!(needs(of_struct)[1].id, TypeId::of::<String>());
    assert!(needs(of_enum).is_empty());
}

#[tokio::test]
async fn a_missing_state_is_an_error_that_names_its_type() {
    async fn handler(_: Resize, _: State<Vec<u64>>) -> Result<(), BoxError> {
        Ok(())
    }
    let error = run(handler, resize()).await.unwrap_err();
    assert_eq!(error.to_string(), "no state of type `alloc::vec::Vec<u64>` was set");
    assert_eq!(needs(handler), [Need::state::<Vec<u64>>()]);
}

#[tokio::test]
async fn raw_takes_the_bytes_of_any_type() {
    async fn handler(raw: Raw) -> Result<String, BoxError> {
        Ok(format!("{}: {:?}", raw.task_type, raw.bytes))
    }
    let binary = TaskRecord { payload: b"\xff\x00"[..].into(), ..resize() };
    assert_eq!(value(handler, binary).await, r#"image:resize: b"\xff\0""#);
}

#[tokio::test]
async fn an_enum_gets_the_variant_of_the_tasks_type() {
    async fn handler(job: Job) -> Result<String, BoxError> {
        Ok(match job {
            Job::SendEmail { to } => to,
            Job::GenerateSitemap => "sitemap".into(),
        })
    }
    let email = testing::task(&Job::SendEmail { to: "ada".into() }).unwrap();
    assert_eq!(email.task_type, "send_email");
    assert_eq!(value(handler, email).await, "ada");
    assert_eq!(value(handler, testing::task(&Job::GenerateSitemap).unwrap()).await, "sitemap");
    let error = run(handler, resize()).await.unwrap_err();
    assert_eq!(Next::of(&*error).class, Class::Undecodable);
    assert_eq!(
        error.to_string(),
        "the payload is no `arguments::Job`: \
         expected a task of type `send_email`, `generate_sitemap`, this one is `image:resize`"
    );
}

#[tokio::test]
async fn a_payload_that_does_not_decode_says_what_and_where() {
    async fn of_struct(_: Resize) -> Result<(), BoxError> {
        Ok(())
    }
    async fn of_enum(_: Job) -> Result<(), BoxError> {
        Ok(())
    }
    let with = |task: TaskRecord, payload: &'static [u8]| TaskRecord { payload: payload.into(), ..task };
    let email = || testing::task(&Job::SendEmail { to: "ada".into() }).unwrap();
    let resize_is = "the payload is no `arguments::Resize`";
    for (result, message) in [
        (
            run(of_struct, with(resize(), b"{\n \"path\": \"a\"\n}")).await,
            format!("{resize_is}: missing field `width` at line 3 column 1"),
        ),
        (
            run(of_struct, with(resize(), b"{\"path\":\"a\",\"width\":-1}")).await,
            format!("{resize_is}: invalid value: integer `-1`, expected u32 at line 1 column 22"),
        ),
        (
            run(of_struct, with(resize(), b"\xff\xd8\xff")).await,
            format!("{resize_is}: expected value at line 1 column 1"),
        ),
        (
            run(of_struct, with(resize(), b"")).await,
            "the empty payload is no `arguments::Resize`: invalid type: null, expected struct Resize at line 1 column 4"
                .to_owned(),
        ),
        (
            run(of_enum, with(email(), b"{}")).await,
            "the payload is no `arguments::Job`: missing field `to` at line 1 column 2".to_owned(),
        ),
        (
            run(of_enum, with(email(), b"5")).await,
            "the payload is no `arguments::Job`: \
             invalid type: integer `5`, expected the fields of `Job::SendEmail` at line 1 column 1"
                .to_owned(),
        ),
    ] {
        let error = result.unwrap_err();
        assert_eq!(error.to_string(), message);
        assert_eq!(Next::of(&*error).class, Class::Undecodable);
    }
}

#[tokio::test]
async fn an_application_may_have_arguments_of_its_own() {
    struct Attempt(u32);
    impl FromCall for Attempt {
        fn from_call(cx: &Context) -> Result<Self, BoxError> {
            Ok(Self(cx.retried() + 1))
        }
    }
    async fn handler(attempt: Attempt, _: Resize) -> Result<u32, BoxError> {
        Ok(attempt.0)
    }
    let third = TaskRecord { retried: 2, ..resize() };
    assert_eq!(value(handler, third).await, serde_json::json!(3));
}
