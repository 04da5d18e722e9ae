//! What asynq's own command line shows of a whole worker of ours is what our inspector says, and what it is told to do is done.

mod act;
mod look;

use acceptance::place::{Place, play, send};
use acceptance::stage::{Part, Play};
use poolwright::core::{Clock, State as Is, TaskRecord, clock::SystemClock};
use poolwright::inspector::QueueView;
use poolwright::prelude::*;
use serde_json::{Value, json};

use crate::asynq::{self, Asynq};

/// One worker for `work` and `side`, which a task that waits on the stage keeps busy, and a pool that is idle.
const QUEUES: &str = r#"
[runtime]
grace = "1m"

[retry.late]
kind = "fixed"
delay = "1h"

[task_defaults]
retry = "late"
max_retry = 7
retention = "1h"

[pools.main]
workers = 1
queues = { work = 3, side = 1 }

[pools.idle]
workers = 5
queues = { rest = 2 }

[tasks.part]
queue = "work"
[tasks.aside]
queue = "side"
[tasks.report]
queue = "work"
"#;

const HOST: &str = "harbour";

/// A worker of ours with a task in each state in the queue `work`, named for it, and one that waits in `side`.
struct Desk {
    play: Play,
    app: Running,
    asynq: Asynq,
    place: Place,
}

/// A handler with a result.
async fn report(_: Raw) -> Result<Value, BoxError> {
    Ok(json!({"pages": 12}))
}

impl Desk {
    /// None where nobody has the program.
    async fn open() -> Option<Self> {
        asynq::program()?;
        let place = Place::on_redis(QUEUES);
        let asynq = Asynq::on(place.server().unwrap())?;
        let play = Play::new();
        let app = place.playing(&play.stage, &["part", "aside"]).handle_as("report", report);
        let app = app.tune(|options| {
            acceptance::impatient(options);
            options.beat_every = Duration::from_millis(50);
            options.host = Some(HOST.to_owned());
        });
        let desk = Self { app: app.start().await.unwrap(), play, asynq, place };
        desk.fill().await;
        Some(desk)
    }

    /// What ends comes first: then one task keeps the only worker, and others have to wait.
    async fn fill(&self) {
        let client = self.app.client();
        send(&client, "report", "completed", Part::Ok).await;
        send(&client, "part", "retry", Part::Fail).await;
        send(&client, "part", "archived", Part::Permanent).await;
        let ended = |of: [u64; 3]| of == [1, 1, 1];
        let counts = |status: &poolwright::worker::Status| {
            [status.counts.completed, status.counts.retried, status.counts.letters_recorded]
        };
        self.app.until(|status| ended(counts(status))).await;
        send(&client, "part", "active", Part::Wait).await;
        self.play.journal.until(|log| log.starts_of("active") == 1).await;
        let scheduled = play(&client, "part", "scheduled", Part::Ok).delay(Duration::from_secs(3_600));
        scheduled.send().await.unwrap();
        send(&client, "part", "pending", Part::Ok).await;
        send(&client, "aside", "aside", Part::Ok).await;
    }

    fn inspector(&self) -> TaskInspector {
        self.app.inspector()
    }

    /// A task of `work` as we have it.
    async fn task(&self, id: &str) -> TaskRecord {
        self.inspector().raw(("work", id)).await.unwrap()
    }

    /// Its state; none when it is gone.
    async fn state(&self, id: &str) -> Option<Is> {
        match self.inspector().raw(("work", id)).await {
            Ok(task) => Some(task.state),
            Err(error) if error.is_not_found() => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// The tasks of `work` in a state, by our inspector.
    async fn ids(&self, state: Is) -> Vec<String> {
        let page = self.inspector().tasks("work", state, 100, None).await.unwrap();
        page.tasks.iter().map(|task| task.id.to_string()).collect()
    }

    async fn queue(&self, name: &str) -> QueueView {
        self.inspector().queue(name).await.unwrap()
    }

    /// Lets everything end, and ends.
    async fn close(self) {
        self.play.stage.open_all();
        self.app.shutdown().await.unwrap();
    }
}

/// What is to last so long from a moment between these two on, to a second each way, ends then.
fn is_left(seconds: i64, (from, to): (Timestamp, Timestamp), end: Timestamp) -> bool {
    (end.as_secs() - to.as_secs() - 1..=end.as_secs() - from.as_secs() + 1).contains(&seconds)
}

fn now() -> Timestamp {
    SystemClock.now()
}
