//! Enqueues that wait for replicas, where the options ask for it.
//!
//! `WAIT` blocks its connection, and speaks of the writes of its own connection alone. So these calls have connections of their
//! own, one for each call that is under way, kept for the next.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use poolwright_broker::Error;
use redis::Value;

use crate::link::{CallError, Dedicated, Link};
use crate::script::Call;

/// How late the server may end a wait: it looks for those that are over ten times a second, and may be busy.
const LATE_MAX: Duration = Duration::from_millis(500);

/// The most idle connections that are kept for one key. What comes back beyond them is closed.
const IDLE_MAX: usize = 8;

/// How many replicas are waited for, on which connections.
pub(crate) struct Durable {
    link: Link,
    replicas: u32,
    limit: Duration,
    idle: Mutex<HashMap<Vec<u8>, Vec<Dedicated>>>,
}

impl Durable {
    /// None where nobody asked for replicas.
    pub(crate) fn new(link: Link, replicas: u32, limit: Duration) -> Option<Self> {
        (replicas > 0).then(|| Self { link, replicas, limit, idle: Mutex::default() })
    }

    /// Runs a script, and gives its answer once so many replicas have what it wrote.
    pub(crate) async fn run(&self, call: &Call) -> Result<Result<Value, CallError>, Error> {
        let key = call.route().unwrap_or_default().to_vec();
        let connection = match self.take(&key) {
            Some(connection) => connection,
            None => self.link.dedicated(&key).await?,
        };
        let answer = match connection.call(&call.by_sha(), Some(self.limit)).await {
            Err(error) if error.is_noscript() => connection.call(&call.by_text(), Some(self.limit)).await,
            answer => answer,
        };
        if answer.is_ok() {
            self.wait(&connection).await?;
        }
        self.give_back(key, connection);
        Ok(answer)
    }

    async fn wait(&self, connection: &Dedicated) -> Result<(), Error> {
        let mut wait = redis::cmd("WAIT");
        let millis = u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX);
        wait.arg(self.replicas).arg(millis);
        let reached = connection.call(&wait, Some(self.limit + self.limit.max(LATE_MAX))).await?;
        match reached {
            Value::Int(count) if count >= i64::from(self.replicas) => Ok(()),
            reached => {
                let count = if let Value::Int(count) = reached { count } else { 0 };
                let why = format!(
                    "{} of {} replicas have the tasks within {} ms; the primary has them",
                    count, self.replicas, millis
                );
                Err(Error::Unavailable { why })
            }
        }
    }

    fn idle(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Vec<Dedicated>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, key: &[u8]) -> Option<Dedicated> {
        let mut idle = self.idle();
        let connections = idle.get_mut(key)?;
        while let Some(connection) = connections.pop() {
            if !connection.is_closed() {
                return Some(connection);
            }
        }
        None
    }

    fn give_back(&self, key: Vec<u8>, connection: Dedicated) {
        let mut idle = self.idle();
        let connections = idle.entry(key).or_default();
        if !connection.is_closed() && connections.len() < IDLE_MAX {
            connections.push(connection);
        }
    }

    /// Closes what is idle.
    pub(crate) fn close(&self) {
        self.idle().clear();
    }
}
