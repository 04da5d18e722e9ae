//! `enqueue`: one task from the command line, or many from a file.

mod line;
mod many;
mod reader;

use std::io::{self, Read as _};

use poolwright::Topology;
use poolwright::broker::{Enqueued, How};
use poolwright::client::Request;
use poolwright::registry::size;
use serde::Serialize;
use serde::de::IgnoredAny;

use crate::args::{Enqueue, TaskOptions};
use crate::failure::Failure;
use crate::place::Place;
use crate::print::Output;

/// A task that the store took.
#[derive(Serialize)]
struct Taken {
    /// The line it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    id: String,
    queue: String,
    #[serde(rename = "type")]
    task_type: String,
    state: &'static str,
    how: How,
}

pub(crate) async fn run(enqueue: Enqueue, place: &Place, out: &mut Output) -> Result<(), Failure> {
    if let Some(from) = enqueue.from {
        return many::run(&from, place, out).await;
    }
    let task_type = enqueue.task_type.expect("clap asks for a type where there is no file");
    let payload = payload(&enqueue.payload.expect("clap asks for a payload where there is no file"))?;
    let queue = enqueue.options.queue.clone();
    place
        .make(
            |topology| names_are_known(topology, &task_type, queue.as_deref()),
            async |open| {
                let client = open.client();
                let request = enqueue.options.apply(client.raw(&task_type, payload));
                let enqueued = request.send().await?;
                let taken = Taken::new(&enqueued, &task_type, client.topology());
                out.result(&taken, |_| taken.text() + "\n")
            },
        )
        .await
}

/// The JSON that was given, without the blanks around it.
fn payload(given: &str) -> Result<String, Failure> {
    let text = if given == "-" { from_stdin()? } else { given.to_owned() };
    match serde_json::from_str::<IgnoredAny>(&text) {
        Ok(_) => Ok(text.trim().to_owned()),
        Err(why) => Err(Failure::Misused(format!("the payload is no JSON: {why}"))),
    }
}

fn from_stdin() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    // One byte more than any type may allow, so that what is too large is refused as such.
    let mut stdin = io::stdin().take(size::MAX as u64 + 1);
    stdin.read_to_end(&mut bytes).map_err(|why| Failure::Failed(format!("stdin cannot be read: {why}")))?;
    String::from_utf8(bytes).map_err(|why| Failure::Misused(format!("the payload is no JSON: {why}")))
}

fn names_are_known(topology: &Topology, task_type: &str, queue: Option<&str>) -> Result<(), Failure> {
    topology.require_type(task_type)?;
    if let Some(queue) = queue {
        topology.require_queue(queue)?;
    }
    Ok(())
}

impl TaskOptions {
    /// The request with all that was said.
    fn apply(self, request: Request<'_>) -> Request<'_> {
        let mut request = request;
        if let Some(delay) = self.delay {
            request = request.delay(delay);
        }
        if let Some(time) = self.at {
            request = request.at(time);
        }
        if let Some(id) = self.id {
            request = request.id(id);
        }
        if let Some(lasts) = self.unique_for {
            request = request.unique_for(lasts);
        }
        if let Some(keep) = self.retention {
            request = request.retention(keep);
        }
        if let Some(retries) = self.max_retry {
            request = request.max_retry(retries);
        }
        if let Some(limit) = self.timeout {
            request = request.timeout(limit);
        }
        if let Some(queue) = self.queue {
            request = request.queue(queue);
        }
        self.header.into_iter().fold(request, |request, (key, value)| request.header(key, value))
    }
}

impl Taken {
    fn new(enqueued: &Enqueued, task_type: &str, topology: &Topology) -> Self {
        let queue = &enqueued.key.queue;
        Self {
            line: None,
            id: enqueued.key.id.to_string(),
            queue: topology.queue(queue).map_or_else(|| queue.to_string(), |queue| queue.name.to_string()),
            task_type: task_type.to_owned(),
            state: enqueued.state.as_str(),
            how: enqueued.how,
        }
    }

    fn text(&self) -> String {
        let how = match self.how {
            How::Stored => "",
            How::Replaced => ", in place of one that had ended",
            How::Coalesced => ", one with this id waited already and will do",
            How::RunsAgain => ", one with this id runs and this one follows it",
        };
        format!("{}/{} {}{how}", self.queue, self.id, self.state)
    }
}
