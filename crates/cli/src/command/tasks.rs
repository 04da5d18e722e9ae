//! `tasks`: a page of one queue and state.

use poolwright::broker::Cursor;
use poolwright::core::{State, Timestamp};
use poolwright::inspector::{TaskPage, TaskView};

use crate::ago;
use crate::args::Tasks;
use crate::failure::Failure;
use crate::place::Place;
use crate::print::{self, Output, Paint};
use crate::table::{Cell, Table};

/// An error is cut there; `task` shows all of it.
const ERROR_COLUMNS_MAX: usize = 80;

pub(crate) async fn run(tasks: Tasks, place: &Place, out: &mut Output) -> Result<(), Failure> {
    place
        .look(async |open| {
            let after = tasks.cursor.map(Cursor);
            let page = open.inspector().tasks(&tasks.queue, tasks.state, tasks.limit, after).await?;
            out.result(&page, |paint| text(&page, tasks.state, open.now(), paint))?;
            if !out.is_json() {
                say(&page, &tasks.queue, tasks.state);
            }
            Ok(())
        })
        .await
}

/// What the table does not show.
fn say(page: &TaskPage, queue: &str, state: State) {
    if page.tasks.is_empty() {
        print::note(format!("no {state} tasks in {queue}"));
    }
    if let Some(cursor) = &page.next_cursor {
        print::note(format!("there are more; go on with --cursor {}", cursor.0));
    }
}

fn text(page: &TaskPage, state: State, now: Timestamp, paint: Paint) -> String {
    let titles: &[&str] = match state {
        State::Pending => &["ID", "TYPE", "ENQUEUED", "#RETRIED"],
        State::Active => &["ID", "TYPE", "STARTED", "#RETRIED", "WORKER", "PROGRESS"],
        State::Scheduled => &["ID", "TYPE", "DUE", "#RETRIED"],
        State::Retry => &["ID", "TYPE", "NEXT TRY", "#RETRIED", "CLASS", "LAST ERROR"],
        State::Archived => &["ID", "TYPE", "FAILED", "#RETRIED", "CLASS", "LAST ERROR"],
        State::Completed => &["ID", "TYPE", "COMPLETED", "#RETRIED", "EXPIRES"],
    };
    let mut table = Table::new(titles);
    for task in &page.tasks {
        table.push(row(task, state, now));
    }
    table.render(paint)
}

fn row(task: &TaskView, state: State, now: Timestamp) -> Vec<Cell> {
    let when = |at: Option<Timestamp>| Cell::maybe(at.map(|at| ago::from_now(now, at)));
    let time = match state {
        State::Pending => when(Some(task.enqueued_at)),
        State::Active => when(task.started_at),
        State::Scheduled | State::Retry => when(task.next_process_at),
        State::Archived => when(task.last_failed_at),
        State::Completed => when(task.completed_at),
    };
    let retried = Cell::of(format!("{}/{}", task.retried, task.max_retry));
    let mut row = vec![Cell::of(&task.id), Cell::of(&task.task_type), time, retried];
    match state {
        State::Pending | State::Scheduled => {}
        State::Active => row.extend([Cell::maybe(task.worker.as_ref()), progress(task)]),
        State::Retry | State::Archived => {
            row.push(Cell::maybe(task.last_error_class));
            row.push(Cell::cut(task.last_error.as_deref().unwrap_or_default(), ERROR_COLUMNS_MAX));
        }
        State::Completed => row.push(when(task.expires_at)),
    }
    row
}

fn progress(task: &TaskView) -> Cell {
    let reported = task.progress.as_ref();
    Cell::maybe(reported.map(|progress| format!("{:.0} % {}", progress.done * 100.0, progress.note)))
}
