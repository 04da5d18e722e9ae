//! Notices that a queue has something pending, whoever pushed it, without polling.
//!
//! `BLMOVE pending pending RIGHT RIGHT` moves the front of the queue to where it is: it changes nothing, and returns when there
//! is something. It needs a connection of its own, and is only sent while somebody waits for the queue.
//!
//! Invariant: a queue that has tasks which nobody here takes (all workers busy, or it is paused) is asked less and less often,
//! at last once a second; once a claim found it empty, at once again.

use std::time::{Duration, Instant};

use poolwright_core::QueueName;
use redis::Value;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::keys::Keys;
use crate::link::{CallError, Dedicated, Link};

/// How long the server waits before it says that nothing came. Longer than this plus [`GRACE`] and the connection is taken for dead.
const WAIT: Duration = Duration::from_secs(10);

const GRACE: Duration = Duration::from_secs(5);

/// How often a paused queue, or one whose tasks nobody takes, is looked at.
const REST_MAX: Duration = Duration::from_secs(1);

/// How long a lost connection is left alone. Making one waits for a server longer than this.
const RETRY: Duration = Duration::from_millis(200);

/// An answer that came this soon was there already.
const AT_ONCE: Duration = Duration::from_millis(2);

/// How somebody asks to be told.
#[derive(Default)]
pub(crate) struct Waiter {
    asked: Notify,
    empty: Notify,
}

impl Waiter {
    /// Somebody waits for the queue.
    pub(crate) fn ask(&self) {
        self.asked.notify_one();
    }

    /// A claim found the queue empty.
    pub(crate) fn found_empty(&self) {
        self.empty.notify_one();
    }
}

/// Tells of each time at which the queue has something, as long as somebody asks.
pub(crate) async fn run(
    link: Link,
    queue: QueueName,
    waiter: std::sync::Arc<Waiter>,
    ring: impl Fn(&QueueName) + Send,
) {
    let keys = Keys::of(&queue);
    let (mut connection, mut rest, mut lost) = (None, Duration::ZERO, false);
    loop {
        waiter.asked.notified().await;
        // A pause is of interest only once there is something.
        let mut may_be_paused = true;
        let began = loop {
            let began = Instant::now();
            let looked = look(&link, &keys, &mut connection, may_be_paused).await;
            may_be_paused = !matches!(looked, Ok(Look::Nothing));
            if looked.is_ok() && std::mem::take(&mut lost) {
                // What was pushed meanwhile may have been taken and put back: whoever waits looks for himself.
                ring(&queue);
            }
            match looked {
                Ok(Look::Something) => break began,
                Ok(Look::Nothing) => {}
                Ok(Look::Paused) => sleep(REST_MAX).await,
                Err(_) => {
                    connection = None;
                    lost = true;
                    sleep(RETRY).await;
                }
            }
        };
        ring(&queue);
        rest = if began.elapsed() > AT_ONCE {
            Duration::ZERO
        } else {
            (rest * 2).clamp(Duration::from_millis(5), REST_MAX)
        };
        tokio::select! {
            () = sleep(rest) => {}
            () = waiter.empty.notified() => rest = Duration::ZERO,
        }
    }
}

enum Look {
    Something,
    Nothing,
    Paused,
}

async fn look(
    link: &Link,
    keys: &Keys,
    connection: &mut Option<Dedicated>,
    may_be_paused: bool,
) -> Result<Look, CallError> {
    let pending = keys.pending();
    let connection = match connection {
        Some(connection) => connection,
        None => connection.insert(link.dedicated(pending.as_bytes()).await?),
    };
    if may_be_paused {
        let mut paused = redis::cmd("EXISTS");
        paused.arg(keys.paused());
        if connection.call(&paused, Some(GRACE)).await? == Value::Int(1) {
            return Ok(Look::Paused);
        }
    }
    let mut command = redis::cmd("BLMOVE");
    command.arg(&pending).arg(&pending).arg("RIGHT").arg("RIGHT").arg(WAIT.as_secs());
    match connection.call(&command, Some(WAIT + GRACE)).await? {
        Value::Nil => Ok(Look::Nothing),
        _ => Ok(Look::Something),
    }
}
