//! An orchestrator from its description to its end.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::sync::{Arc, Mutex};

use poolwright::core::{BoxFuture, Class, DeadLetter, DeadLetterSink, State as TaskState};
use poolwright::inspector::Cancelled;
use poolwright::ledger::{Filter, ListRequest};
use poolwright::prelude::*;
use poolwright::{Error, Stores};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tower::util::MapRequestLayer;

#[derive(Debug, PartialEq, Serialize, Deserialize, TaskType)]
#[task("mail:send")]
struct SendMail {
    to: String,
}

fn mail(to: &str) -> SendMail {
    SendMail { to: to.to_owned() }
}

type Sent = UnboundedSender<String>;

async fn send_mail(mail: SendMail, cx: Context, State(sent): State<Sent>) -> Result<(), BoxError> {
    if mail.to.is_empty() {
        return Err(TaskError::permanent("nobody to send to").into());
    }
    sent.send(format!("{} by {}", mail.to, cx.pool()))?;
    Ok(())
}

fn topology() -> Topology {
    Topology::builder()
        .pool("post", 2, [("mail", 1)])
        .pool("press", 1, [("reports", 1)])
        .task("mail:send", "mail")
        .task("report:print", "reports")
        .build()
        .unwrap()
}

fn post_office() -> (Orchestrator, UnboundedReceiver<String>) {
    let (sent, inbox) = unbounded_channel();
    (Orchestrator::new(topology()).state(sent).handle(send_mail), inbox)
}

fn url(here: &Path) -> String {
    format!("sqlite://{}", here.join("tasks.db").display())
}

fn problems(error: &Error) -> Vec<String> {
    match error {
        Error::Refused { problems } => problems.iter().map(ToString::to_string).collect(),
        other => panic!("expected a refusal, got: {other}"),
    }
}

#[tokio::test]
async fn a_task_goes_from_its_enqueue_to_its_end_and_the_file_remembers() {
    let here = tempfile::tempdir().unwrap();
    let (office, mut inbox) = post_office();
    let running = office.broker(url(here.path())).start().await.unwrap();
    running.client().enqueue(&mail("ada")).await.unwrap();
    assert_eq!(inbox.recv().await.unwrap(), "ada by post");
    running.until(|status| status.counts.completed == 1).await;
    let report = running.shutdown().await.unwrap();
    assert_eq!((report.unsettled, report.stuck, report.failed), (0, 0, None));

    let inspector = TaskInspector::connect(&url(here.path()), &topology()).await.unwrap();
    let queue = inspector.queue("mail").await.unwrap();
    assert_eq!((queue.size, queue.processed), (0, 1));
}

#[tokio::test]
async fn a_client_of_another_program_reaches_the_same_pools() {
    let here = tempfile::tempdir().unwrap();
    let (office, mut inbox) = post_office();
    let running = office.broker(url(here.path())).start().await.unwrap();
    let client = Client::connect(&url(here.path()), &topology()).await.unwrap();
    client.enqueue(&mail("bob")).await.unwrap();
    assert_eq!(inbox.recv().await.unwrap(), "bob by post");
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn tasks_wait_for_the_next_start() {
    let here = tempfile::tempdir().unwrap();
    let client = Client::connect(&url(here.path()), &topology()).await.unwrap();
    client.enqueue(&mail("early")).await.unwrap();
    client.broker().close().await.unwrap();
    let (office, mut inbox) = post_office();
    let running = office.broker(url(here.path())).start().await.unwrap();
    assert_eq!(inbox.recv().await.unwrap(), "early by post");
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn everything_that_is_wrong_is_told_at_once() {
    #[derive(Serialize, Deserialize, TaskType)]
    #[task("mail:sned")]
    struct Typo;
    async fn typo(_: Typo) -> Result<(), BoxError> {
        Ok(())
    }
    let layer = || MapRequestLayer::new(|call| call);
    let error = Orchestrator::new(topology())
        .broker("memory:")
        .handle(send_mail)
        .handle(send_mail)
        .handle(typo)
        .state(1_u8)
        .state(2_u8)
        .pools(["post", "pres"])
        .layer_for_pool("pots", layer())
        .layer_for_type("mail:sent", layer())
        .start()
        .await
        .unwrap_err();
    let said = problems(&error);
    let expected = [
        "two states of type `u8` were set",
        "`pools`: unknown pool `pres`, did you mean `press`?",
        "`layer_for_pool`: unknown pool `pots`, did you mean `post`?",
        "`layer_for_type`: unknown task type `mail:sent`, did you mean `mail:send`?",
        "task type mail:send has two handlers",
        "is for task type mail:sned, which is not declared",
        "no state of that type was set",
    ];
    assert_eq!(said.len(), expected.len(), "{said:#?}");
    for (said, expected) in said.iter().zip(expected) {
        assert!(said.contains(expected), "{said}\n{expected}");
    }
    assert!(error.to_string().starts_with("the orchestrator cannot start:\n  - two states"));
}

#[tokio::test]
async fn nothing_to_run_or_nowhere_to_keep_it_is_told() {
    let error = Orchestrator::new(topology()).broker("memory:").start().await.unwrap_err();
    assert_eq!(problems(&error), ["no handler was given: call `.handle(your_async_fn)`"]);
    let (office, _inbox) = post_office();
    let error = office.start().await.unwrap_err();
    assert_eq!(problems(&error), ["no store was given: call `.broker(\"sqlite://tasks.db\")`"]);
    let (office, _inbox) = post_office();
    let error = office.broker("tasks.db").start().await.unwrap_err();
    assert!(error.to_string().contains("did you mean `sqlite://tasks.db`?"), "{error}");
}

#[tokio::test]
async fn a_type_without_a_handler_is_refused_only_where_that_was_asked_for() {
    let (office, _inbox) = post_office();
    let error = office.broker("memory:").require_handlers().start().await.unwrap_err();
    assert_eq!(problems(&error), ["task type report:print has no handler"]);
    // The pool that could get such tasks does not run here.
    let (office, _inbox) = post_office();
    let running = office.broker("memory:").require_handlers().pools(["post"]).start().await.unwrap();
    let pools: Vec<String> = running.status().pools.iter().map(|pool| pool.name.to_string()).collect();
    assert_eq!(pools, ["post"]);
    running.shutdown().await.unwrap();
    let (office, _inbox) = post_office();
    office.broker("memory:").start().await.unwrap().shutdown().await.unwrap();
}

#[tokio::test]
async fn a_main_that_returns_the_error_shows_line_and_cure() {
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("queues.toml");
    std::fs::write(&file, "version = 1\n[pools.post]\nworkres = 2\nqueues = { mail = 1 }\n").unwrap();
    let text = |error: BoxError| format!("{error:?}");
    for shown in [
        text(Orchestrator::load(&file).err().unwrap().into()),
        text(Topology::load(&file).err().unwrap().into()),
    ] {
        assert!(shown.contains("queues.toml:3:1\n") && shown.contains("did you mean `workers`?"), "{shown}");
    }
    let refused = Orchestrator::new(topology()).start().await.err().unwrap();
    assert_eq!(
        text(refused.into()),
        "the orchestrator cannot start: no store was given: call `.broker(\"sqlite://tasks.db\")`"
    );
}

#[tokio::test]
async fn a_mistake_in_the_file_is_refused_with_its_line_and_its_cure() {
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("queues.toml");
    std::fs::write(&file, "version = 1\n[pools.post]\nworkres = 2\nqueues = { mail = 1 }\n").unwrap();
    let error = Orchestrator::load(&file).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("unknown key `workres`, did you mean `workers`?") && text.contains(":3:1"),
        "{text}"
    );
    assert!(matches!(Orchestrator::load(here.path().join("none.toml")), Err(Error::File(_))));
}

#[tokio::test]
async fn what_an_operator_set_in_the_ledger_wins_over_the_file() {
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("queues.toml");
    let text = "version = 1\n[pools.post]\nworkers = 2\nsetting = \"post.workers\"\nqueues = { mail = 1 }\n\
                [tasks.\"mail:send\"]\nqueue = \"mail\"\n";
    std::fs::write(&file, text).unwrap();
    let stores = Stores::open(&url(here.path()), None).await.unwrap();
    stores.ledger.set("post.workers".into(), "7".into()).await.unwrap();
    stores.broker.close().await.unwrap();

    let (sent, _inbox) = unbounded_channel::<String>();
    let office = Orchestrator::load(&file).unwrap().broker(url(here.path())).state(sent).handle(send_mail);
    let running = office.start().await.unwrap();
    assert_eq!(running.status().pools[0].workers, 7);
    assert_eq!(*running.topology().pool("post").unwrap().workers, 7);
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_failed_task_leaves_a_letter_in_the_ledger_and_with_the_applications_sink() {
    #[derive(Clone)]
    struct Desk(UnboundedSender<DeadLetter>);
    impl DeadLetterSink for Desk {
        fn record<'a>(&'a self, letters: &'a [DeadLetter]) -> BoxFuture<'a, Result<(), BoxError>> {
            letters.iter().for_each(|letter| self.0.send(letter.clone()).unwrap());
            Box::pin(std::future::ready(Ok(())))
        }
    }
    let (desk, mut told) = unbounded_channel();
    let (office, mut inbox) = post_office();
    let running = office.broker("memory:").on_dead_letter(Desk(desk)).start().await.unwrap();
    let enqueued = running.client().enqueue(&mail("")).await.unwrap();
    let letter = told.recv().await.unwrap();
    assert_eq!(
        (letter.task, letter.class, &*letter.error),
        (enqueued.key, Class::Permanent, "nobody to send to")
    );
    // The ledger has it before the application's sink is told.
    let letters = running.dead_letters();
    let id = letters.list(ListRequest::default()).await.unwrap().letters[0].id;
    let again = letters.replay(id).await.unwrap();
    // A letter may be told twice, so the first one may come again before the second.
    while told.recv().await.unwrap().task != again.key {}
    assert_eq!(letters.count(Filter::default()).await.unwrap(), 2);
    running.client().enqueue(&mail("ada")).await.unwrap();
    assert_eq!(inbox.recv().await.unwrap(), "ada by post");
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn layers_stand_in_their_order_and_only_where_they_were_put() {
    #[derive(Serialize, Deserialize, TaskType)]
    #[task("report:print")]
    struct Print;
    async fn print(_: Print, cx: Context, State(sent): State<Sent>) -> Result<(), BoxError> {
        sent.send(cx.extension::<Trail>().unwrap().0)?;
        Ok(())
    }
    #[derive(Clone, Default)]
    struct Trail(String);
    let step = |name: &'static str| {
        MapRequestLayer::new(move |call: poolwright::handler::TaskCall| {
            let Trail(before) = call.context().extension().unwrap_or_default();
            call.context().extend(Trail(format!("{before}{name}>")));
            call
        })
    };
    let (sent, mut inbox) = unbounded_channel();
    let running = Orchestrator::new(topology())
        .broker("memory:")
        .state::<Sent>(sent)
        .handle(print)
        .layer(step("outer"))
        .layer(step("inner"))
        .layer_for_type("report:print", step("type"))
        .layer_for_pool("press", step("pool"))
        .layer_for_pool("post", step("elsewhere"))
        .start()
        .await
        .unwrap();
    running.client().enqueue(&Print).await.unwrap();
    assert_eq!(inbox.recv().await.unwrap(), "outer>inner>pool>type>");
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_running_task_is_cancelled_through_the_inspector_that_handlers_can_take() {
    async fn waits(_: SendMail, cx: Context, State(sent): State<Sent>) -> anyhow::Result<()> {
        sent.send(cx.task_id().to_string())?;
        cx.cancelled().await;
        anyhow::bail!("stopped")
    }
    #[derive(Serialize, Deserialize, TaskType)]
    #[task("report:print")]
    struct Cancel {
        id: String,
    }
    async fn cancels(
        task: Cancel,
        State(inspector): State<TaskInspector>,
        State(met): State<UnboundedSender<Cancelled>>,
    ) -> Result<(), BoxError> {
        met.send(inspector.cancel_task(task.id.as_str()).await?)?;
        Ok(())
    }
    let (sent, mut inbox) = unbounded_channel();
    let (met, mut outcomes) = unbounded_channel::<Cancelled>();
    let office = Orchestrator::new(topology()).broker("memory:").state::<Sent>(sent).state(met);
    let running = office.handle(waits).handle(cancels).start().await.unwrap();
    running.client().enqueue(&mail("ada")).await.unwrap();
    let id = inbox.recv().await.unwrap();
    running.client().enqueue(&Cancel { id: id.clone() }).await.unwrap();
    assert_eq!(outcomes.recv().await.unwrap(), Cancelled::Signalled);
    running.until(|status| status.counts.discarded == 1).await;
    assert!(running.inspector().task(id.as_str()).await.unwrap_err().is_not_found());
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn an_enum_of_tasks_and_a_raw_handler_serve_their_types() {
    #[derive(Tasks)]
    enum Job {
        #[task("mail:send")]
        Send { to: String },
    }
    async fn job(job: Job, State(sent): State<Sent>) -> Result<(), BoxError> {
        let Job::Send { to } = job;
        Ok(sent.send(format!("typed {to}"))?)
    }
    async fn raw(raw: Raw, State(sent): State<Sent>) -> Result<(), BoxError> {
        Ok(sent.send(format!("{} {:?}", raw.task_type, raw.bytes))?)
    }
    let (sent, mut inbox) = unbounded_channel();
    let office = Orchestrator::new(topology()).broker("memory:").state::<Sent>(sent);
    let running = office.handle(job).handle_as("report:print", raw).start().await.unwrap();
    running.client().enqueue(&Job::Send { to: "ada".into() }).await.unwrap();
    assert_eq!(inbox.recv().await.unwrap(), "typed ada");
    running.client().raw("report:print", &b"\xff"[..]).send().await.unwrap();
    assert_eq!(inbox.recv().await.unwrap(), "report:print b\"\\xff\"");
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn stores_that_were_lent_stay_open() {
    let here = tempfile::tempdir().unwrap();
    let stores = Stores::open(&url(here.path()), None).await.unwrap();
    let (office, mut inbox) = post_office();
    let running = office.stores(stores.clone()).start().await.unwrap();
    running.client().enqueue(&mail("ada")).await.unwrap();
    inbox.recv().await.unwrap();
    running.until(|status| status.counts.completed == 1).await;
    running.shutdown().await.unwrap();
    assert_eq!(stores.broker.queues().await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_is_left_at_a_stop_can_be_looked_at() {
    let (office, _inbox) = post_office();
    let running = office.broker("memory:").start().await.unwrap();
    running.inspector().pause("mail", "not today").await.unwrap();
    let enqueued = running.client().enqueue(&mail("ada")).await.unwrap();
    running.stop();
    running.wait().await;
    let task = running.inspector().task(&enqueued.key).await.unwrap();
    assert_eq!(task.state, TaskState::Pending);
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn knobs_that_the_file_does_not_have_are_tuned() {
    let told = Arc::new(Mutex::new(None));
    let (office, _inbox) = post_office();
    let seen = told.clone();
    let tune = move |options: &mut poolwright::worker::Options| {
        *seen.lock().unwrap() = Some(options.lease);
        options.host = Some("box".into());
    };
    let running = office.broker("memory:").tune(tune).start().await.unwrap();
    assert!(running.worker().id().to_string().starts_with("box:"));
    assert_eq!(*told.lock().unwrap(), Some(Duration::from_secs(10)));
    running.shutdown().await.unwrap();
}
