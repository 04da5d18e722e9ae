//! `task`: one task, with all that the file of queues lets a person see.

use poolwright::core::Timestamp;
use poolwright::inspector::TaskView;
use serde_json::Value;

use crate::ago;
use crate::args::TaskAt;
use crate::failure::Failure;
use crate::place::Place;
use crate::print::{Output, Paint};
use crate::table::Pairs;

pub(crate) async fn run(at: &TaskAt, place: &Place, out: &mut Output) -> Result<(), Failure> {
    place
        .look(async |open| {
            let task = open.inspector().task((at.queue.as_str(), at.id.as_str())).await?;
            out.result(&task, |paint| text(&task, open.now(), paint))
        })
        .await
}

fn text(task: &TaskView, now: Timestamp, paint: Paint) -> String {
    let when = |at: Timestamp| ago::full(now, at);
    let mut pairs = Pairs::default();
    pairs.add("id", &task.id);
    pairs.add("queue", &task.queue);
    pairs.add("type", &task.task_type);
    pairs.add("state", state(task));
    pairs.add("enqueued", when(task.enqueued_at));
    pairs.maybe("due", task.next_process_at.map(when));
    pairs.maybe("started", task.started_at.map(when));
    pairs.maybe("worker", task.worker.as_ref());
    let progress = task.progress.as_ref();
    pairs.maybe(
        "progress",
        progress.map(|at| format!("{:.0} % {}, {}", at.done * 100.0, at.note, when(at.at))),
    );
    pairs.maybe("completed", task.completed_at.map(when));
    pairs.maybe("kept until", task.expires_at.map(when));
    pairs.maybe("deadline", task.deadline.map(when));
    pairs.add("retried", format!("{} of {}", task.retried, task.max_retry));
    pairs.maybe("deferrals", (task.deferrals > 0).then_some(task.deferrals));
    pairs.maybe("crashes", (task.crashes > 0).then_some(task.crashes));
    pairs.maybe("failed", task.last_failed_at.map(when));
    pairs.maybe("class", task.last_error_class);
    pairs.maybe("error", task.last_error.as_ref());
    for (name, value) in &task.shown {
        pairs.add(name, shown(value));
    }
    let actions: Vec<&str> = task.allowed_actions.iter().map(|action| action.as_str()).collect();
    pairs.add("allowed", if actions.is_empty() { "nothing".to_owned() } else { actions.join(", ") });
    pairs.render(paint)
}

fn state(task: &TaskView) -> String {
    let mut words = vec![task.state.as_str()];
    if task.is_orphaned {
        words.push("its worker is lost");
    }
    if task.cancel_requested {
        words.push("its end was asked for");
    }
    words.join(", ")
}

/// A payload field: text without quotes, the rest as JSON.
pub(crate) fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
