//! Cancellations over Redis: published to our processes with their queue, and to Go workers as asynq does, by the id alone.
//!
//! Invariant: our processes hear each cancellation once. What one of ours says on asynq's channel is the echo of what it just
//! said on ours, and is passed over; what is left there came from a Go program, has no flag on its record yet, and gets one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use poolwright_broker::{Cancel, CancelFeed, Error, Inspect, Reply, Signal, Watch};
use poolwright_core::{BoxFuture, QueueName, TaskId, TaskKey};
use tokio::sync::broadcast;
use tokio::time::sleep;

use crate::RedisStore;
use crate::bells::Bells;
use crate::keys::{CANCEL_CHANNEL, OWN_CANCEL_CHANNEL};
use crate::link::{Kind, Link, Subscriber};

/// Echoes that are waited for at most. They come right behind what they echo.
const ECHOES_MAX: usize = 10_000;

/// How long a lost subscription is left alone. Making one waits for a server longer than this.
const RETRY: Duration = Duration::from_millis(200);

impl Signal for RedisStore {
    fn publish(&self, cancel: Cancel) -> Reply<'_, ()> {
        Box::pin(async move {
            let TaskKey { queue, id } = &cancel.key;
            let mut pipeline = redis::pipe();
            pipeline.cmd("PUBLISH").arg(OWN_CANCEL_CHANNEL).arg(format!("{queue}\0{id}"));
            pipeline.cmd("PUBLISH").arg(CANCEL_CHANNEL).arg(id.as_str());
            // In a cluster any node would do; always the same one keeps them in order.
            for answer in self.link.pipeline(Some(CANCEL_CHANNEL.as_bytes()), pipeline, Kind::Write).await? {
                answer?;
            }
            Ok(())
        })
    }

    fn subscribe(&self) -> Reply<'_, Box<dyn CancelFeed>> {
        Box::pin(async {
            let closed = || Error::Refused { why: "the store was closed".to_owned() };
            let feed = self.bells.cancels().ok_or_else(closed)?;
            if !self.bells.has_listener() {
                let subscription = subscribe(&self.link).await?;
                let run = listen(self.link.clone(), Arc::downgrade(&self.bells), subscription);
                self.bells.keep_listener(tokio::spawn(run).abort_handle());
            }
            Ok(Box::new(Feed(feed)) as Box<dyn CancelFeed>)
        })
    }

    fn watch(&self, queues: Vec<QueueName>) -> Box<dyn Watch> {
        Box::new(self.bells.watch(queues))
    }
}

struct Feed(broadcast::Receiver<Cancel>);

impl CancelFeed for Feed {
    fn next(&mut self) -> BoxFuture<'_, Option<Cancel>> {
        Box::pin(async {
            loop {
                match self.0.recv().await {
                    Ok(cancel) => return Some(cancel),
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return None,
                }
            }
        })
    }
}

async fn subscribe(link: &Link) -> Result<Subscriber, Error> {
    let mut subscriber = link.pubsub().await?;
    for channel in [OWN_CANCEL_CHANNEL, CANCEL_CHANNEL] {
        subscriber.subscribe(channel.as_bytes()).await?;
    }
    Ok(subscriber)
}

async fn listen(link: Link, bells: std::sync::Weak<Bells>, mut subscription: Subscriber) {
    loop {
        let mut echoes = Echoes::default();
        while let Some(published) = subscription.next().await {
            let Some(bells) = bells.upgrade() else { return };
            let Ok(text) = String::from_utf8(published.payload) else { continue };
            if published.channel == OWN_CANCEL_CHANNEL.as_bytes() {
                if let Some(key) = own_key(&text) {
                    echoes.expect(key.id.as_str());
                    bells.pass_on(Cancel { key });
                }
            } else if !echoes.is_echo(&text) {
                tokio::spawn(cancel_by_id(bells, text));
            }
        }
        // Cut off. Until it is back, flags are read with each extension of a lease.
        subscription = loop {
            if bells.strong_count() == 0 {
                return;
            }
            match subscribe(&link).await {
                Ok(subscription) => break subscription,
                Err(_) => sleep(RETRY).await,
            }
        };
    }
}

fn own_key(text: &str) -> Option<TaskKey> {
    let (queue, id) = text.split_once('\0')?;
    Some(TaskKey::new(QueueName::new(queue).ok()?, TaskId::new(id).ok()?))
}

/// A Go program wants the end of a task: it gets the flag that ours would have set, and its worker is told.
async fn cancel_by_id(bells: Arc<Bells>, id: String) {
    let Some(store) = bells.store.upgrade() else { return };
    let keys = store.held.of(&id);
    if keys.is_empty() {
        return;
    }
    if let Err(error) = store.request_cancel(keys.clone()).await {
        tracing::warn!(task_id = id, %error, "a cancellation from asynq could not be noted");
    }
    keys.into_iter().for_each(|key| bells.pass_on(Cancel { key }));
}

/// What is still to come on asynq's channel for what was heard on ours.
#[derive(Default)]
struct Echoes(HashMap<String, u32>);

impl Echoes {
    fn expect(&mut self, id: &str) {
        if self.0.len() >= ECHOES_MAX {
            self.0.clear();
        }
        *self.0.entry(id.to_owned()).or_default() += 1;
    }

    fn is_echo(&mut self, id: &str) -> bool {
        let Some(left) = self.0.get_mut(id) else { return false };
        *left -= 1;
        if *left == 0 {
            self.0.remove(id);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_is_passed_over_once() {
        let mut echoes = Echoes::default();
        echoes.expect("a");
        assert!(!echoes.is_echo("b"));
        assert!(echoes.is_echo("a"));
        assert!(!echoes.is_echo("a"), "the second came from elsewhere");
    }

    #[test]
    fn what_is_no_key_is_passed_over() {
        assert!(own_key("a").is_none());
        assert!(own_key("\0a").is_none());
        assert_eq!(own_key("q\0a").map(|key| key.to_string()).as_deref(), Some("q/a"));
    }
}
