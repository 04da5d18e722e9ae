//! What it is told to do with our queues and tasks is done.

use acceptance::journal::What;
use acceptance::place::{play, send};
use acceptance::safely;
use acceptance::stage::Part;
use poolwright::core::Class;
use poolwright::prelude::*;

use super::{Desk, Is};
use crate::until;

#[tokio::test]
async fn a_queue_that_it_pauses_rests_until_it_says_otherwise() {
    let Some(desk) = Desk::open().await else { return };
    safely(async {
        desk.asynq.say("queue pause work").await;
        let work = desk.queue("work").await;
        assert!(work.paused && work.paused_reason.unwrap_or_default().is_empty());
        assert_eq!(desk.asynq.say("queue inspect work").await.value("Paused"), "true");
        desk.asynq.say("queue pause work").await;
        assert_eq!(desk.queue("work").await.paused_since, work.paused_since, "twice is once");
        // The worker goes on with what is in its other queue, and leaves what waits in this one.
        desk.play.stage.open("active");
        let ended = desk.app.until(|status| status.counts.completed == 3).await;
        assert_eq!(ended.counts.completed, 3, "the first one, the active one and the one aside");
        assert_eq!((desk.state("pending").await, desk.queue("side").await.completed), (Some(Is::Pending), 1));

        desk.asynq.say("queue unpause work").await;
        desk.app.until(|status| status.counts.completed == 4).await;
        assert_eq!(
            (desk.state("pending").await, desk.queue("work").await.paused),
            (Some(Is::Completed), false)
        );

        // What we paused it lets go on, and what it paused we do.
        desk.inspector().pause("side", "until the tide is in").await.unwrap();
        assert_eq!(desk.asynq.say("queue inspect side").await.value("Paused"), "true");
        desk.asynq.say("queue resume side").await;
        assert!(!desk.queue("side").await.paused);
        desk.asynq.say("queue pause side").await;
        assert!(desk.inspector().resume("side").await.unwrap());
        assert_eq!(desk.asynq.say("queue inspect side").await.value("Paused"), "false");
        desk.close().await;
    })
    .await;
}

/// A command on a task of `work`.
fn on(act: &str, id: impl std::fmt::Display) -> String {
    format!("task {act} --queue work --id {id}")
}

#[tokio::test]
async fn a_task_that_it_runs_archives_or_deletes_is_there_for_us() {
    let Some(desk) = Desk::open().await else { return };
    safely(async {
        for id in ["scheduled", "retry", "archived"] {
            desk.asynq.say(&on("run", id)).await;
            assert_eq!(desk.state(id).await, Some(Is::Pending), "{id}");
        }
        assert_eq!((desk.task("retry").await.retried, desk.task("archived").await.retried), (1, 0));
        desk.asynq.say(&on("archive", "pending")).await;
        assert_eq!(desk.state("pending").await, Some(Is::Archived));
        // Whose end an operator was has a dead letter that says so.
        desk.app.until(|status| status.counts.letters_recorded == 2).await;
        let letters = desk.app.dead_letters().list(Default::default()).await.unwrap().letters;
        let class = |id: &str| letters.iter().find(|letter| letter.task_id == *id).map(|letter| letter.class);
        assert_eq!((class("pending"), class("archived")), (Some(Class::Operator), Some(Class::Permanent)));
        for id in ["completed", "pending"] {
            desk.asynq.say(&on("delete", id)).await;
            assert_eq!(desk.state(id).await, None, "{id}");
        }
        // What runs it leaves alone.
        for act in ["run", "archive", "delete"] {
            let said = desk.asynq.refuses(&on(act, "active")).await;
            assert!(said.starts_with("error: "), "{act}: {said}");
            assert_eq!(desk.state("active").await, Some(Is::Active));
        }
        let nobody = desk.asynq.refuses(&on("run", "nobody")).await;
        assert!(nobody.ends_with("not found"), "{nobody}");

        // And what it runs is run: one of them for the second time, and in vain again.
        desk.play.stage.open("active");
        desk.app.until(|status| status.counts.completed == 4 && status.counts.retried == 2).await;
        desk.app.until(|status| status.counts.letters_recorded == 3).await;
        desk.play.journal.look(|log| {
            assert_eq!(["scheduled", "retry", "archived"].map(|id| log.starts_of(id)), [1, 2, 2]);
        });
        assert_eq!(desk.state("retry").await, Some(Is::Retry));
        desk.close().await;
    })
    .await;
}

/// A command on all tasks of `work` in a state.
fn all(act: &str, state: Is) -> String {
    format!("task {act} --queue work --state {state}")
}

#[tokio::test]
async fn all_tasks_of_a_state_that_it_runs_archives_or_deletes_are_there_for_us() {
    let Some(desk) = Desk::open().await else { return };
    safely(async {
        let client = desk.app.client();
        for at in 0..150 {
            let task = play(&client, "part", &format!("s{at}"), Part::Ok).delay(Duration::from_secs(3_600));
            task.send().await.unwrap();
        }
        let counts = async || {
            let work = desk.queue("work").await;
            [work.pending, work.scheduled, work.retry, work.archived, work.completed]
        };
        assert_eq!(counts().await, [1, 151, 1, 1, 1]);
        let say = async |act, state| desk.asynq.say(&all(act, state)).await.count();
        assert_eq!(say("archiveall", Is::Retry).await, 1);
        assert_eq!(counts().await, [1, 151, 0, 2, 1]);
        assert_eq!(say("runall", Is::Scheduled).await, 151);
        assert_eq!(counts().await, [152, 0, 0, 2, 1]);
        assert_eq!(say("archiveall", Is::Pending).await, 152);
        assert_eq!(counts().await, [0, 0, 0, 154, 1]);
        assert_eq!(say("runall", Is::Archived).await, 154);
        assert_eq!(counts().await, [154, 0, 0, 0, 1]);
        assert_eq!(say("deleteall", Is::Completed).await, 1);
        assert_eq!(say("deleteall", Is::Pending).await, 154);
        assert_eq!((counts().await, say("runall", Is::Retry).await), ([0; 5], 0));
        assert_eq!(desk.ids(Is::Active).await, ["active"], "what runs was left alone");
        // Nothing is left that would surprise us: the same ids are free again.
        send(&client, "part", "s0", Part::Ok).await;
        desk.play.stage.open("active");
        until("the end of all", async || (desk.state("s0").await == Some(Is::Completed)).then_some(())).await;
        assert_eq!(desk.state("active").await, Some(Is::Completed));
        desk.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_handler_of_ours_hears_when_it_cancels() {
    let Some(desk) = Desk::open().await else { return };
    safely(async {
        // What is published to nobody is heard by nobody.
        let server = desk.place.server().unwrap();
        until("a subscription", async || {
            let heard = server.command(&["PUBSUB", "NUMSUB", "asynq:cancel"]).await.unwrap();
            (heard.items()[1].integer() >= Some(1)).then_some(())
        })
        .await;
        let ids = ["scheduled", "nobody", "active"];
        let said = desk.asynq.lines(&format!("task cancel {}", ids.join(" "))).await;
        assert!(said.len() == 3 && said.iter().zip(ids).all(|(line, id)| line.ends_with(id)), "{said:?}");
        desk.app.until(|status| status.counts.discarded == 1).await;
        desk.play.journal.look(|log| {
            let asked = log.events().iter().filter(|event| matches!(event.what, What::Asked(_)));
            let asked: Vec<_> = asked.map(|event| (&*event.id, event.what)).collect();
            assert_eq!(asked, [("active", What::Asked(Some(Class::Cancelled)))]);
        });
        assert_eq!(desk.state("active").await, None);
        let gone = desk.asynq.refuses(&on("inspect", "active")).await;
        assert!(gone.ends_with("not found"), "{gone}");
        // As with asynq's own workers, only what runs is cancelled.
        assert_eq!(desk.state("scheduled").await, Some(Is::Scheduled));
        desk.app.until(|status| status.counts.completed == 3).await;
        desk.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_queue_that_it_removes_is_gone_until_we_send_to_it_again() {
    let Some(desk) = Desk::open().await else { return };
    safely(async {
        desk.asynq.say("queue rm side").await;
        assert_eq!(desk.queue("side").await.pending, 1, "it has a task");
        desk.asynq.say("queue rm --force side").await;
        assert_eq!(desk.asynq.lines("queue ls").await, ["work"]);
        let side = desk.queue("side").await;
        assert_eq!((side.size, side.completed, side.processed_total), (0, 0, 0));
        desk.asynq.say("queue rm --force work").await;
        let work = desk.queue("work").await;
        assert_eq!((work.active, work.pending), (1, 1), "it has a task that runs");

        send(&desk.app.client(), "aside", "aside", Part::Ok).await;
        let mut names = desk.asynq.lines("queue ls").await;
        names.sort_unstable();
        assert_eq!(names, ["side", "work"]);
        desk.play.stage.open("active");
        desk.app.until(|status| status.counts.completed == 4).await;
        assert_eq!(desk.queue("side").await.completed, 1);
        desk.close().await;
    })
    .await;
}
