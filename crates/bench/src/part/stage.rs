//! What all parts share: how they speak with the scenario that started them, and a topology of one queue.

use std::io::BufRead as _;
use std::time::Duration;

use anyhow::{Context as _, Result};
use poolwright::{Client, Connect as _, Topology};
use serde_json::json;
use tokio::sync::mpsc;

use super::{QUEUE, TASK};

/// Says what has happened.
pub(crate) fn say(event: &str) {
    println!("{}", json!({ "event": event }));
}

/// Says that the work is done, and how long it took.
pub(crate) fn done(took: Duration) {
    println!("{}", json!({ "event": "done", "secs": took.as_secs_f64() }));
}

/// What the scenario tells us.
pub(crate) struct Orders(mpsc::UnboundedReceiver<String>);

impl Orders {
    /// Listens on a thread of its own, which ends with the process.
    pub(crate) fn listen() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                // Nobody listens any more: the process is about to end.
                let _ = sender.send(line);
            }
        });
        Self(receiver)
    }

    /// Says that we are ready, and waits for the word.
    pub(crate) async fn ready(&mut self) -> Result<()> {
        say("ready");
        self.0.recv().await.context("nobody said go").map(drop)
    }

    /// Waits for the next word; none at the end.
    pub(crate) async fn next(&mut self) -> Option<String> {
        self.0.recv().await
    }

    /// Waits until we may go.
    pub(crate) async fn end(&mut self) {
        while self.0.recv().await.is_some() {}
    }
}

/// One queue with one type, and a pool with so many workers.
pub(crate) fn topology(workers: usize) -> Result<Topology> {
    Ok(Topology::simple([(QUEUE, workers)]).task(TASK, QUEUE).build()?)
}

/// A client, as programs have it that run no workers.
pub(crate) async fn client(redis: &str) -> Result<Client> {
    Ok(Client::connect(redis, &topology(1)?).await?)
}
