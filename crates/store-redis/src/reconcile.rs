//! Mending what other programs or an earlier fault left behind: lists by a script, and an unhurried walk over all keys for what
//! belongs to nothing.

use std::time::{Duration, Instant};

use poolwright_broker::{Error, Reconciled};
use poolwright_core::QueueName;
use redis::Value;

use crate::RedisStore;
use crate::keys::Keys;
use crate::link::Kind;
use crate::script::{RECONCILE, TIDY};

/// How long a lease is that is made up for a task without one, in seconds: asynq's.
const LEASE_SECS: u32 = 30;

/// Keys looked at in one step of the walk.
const STEP: u32 = 500;

/// Keys that one script looks at: a server does nothing else meanwhile.
const KEYS_MAX: usize = 50;

/// How many times as long as a step took the walk rests after it: the server has other work, and nothing waits for this.
const REST: u32 = 49;

/// The longest rest.
const REST_MAX: Duration = Duration::from_secs(1);

impl RedisStore {
    pub(crate) async fn reconcile_all(&self, queues: Vec<QueueName>) -> Result<Reconciled, Error> {
        let mut mended = Reconciled::default();
        for queue in &queues {
            self.forget_recorded(queue);
            let keys = Keys::of(queue);
            let mut call = self.call(&RECONCILE);
            call.key(keys.pending()).arg(keys.prefix().to_owned()).number(LEASE_SECS);
            mended.leaseless += self.run(call, Kind::Write).await?.count()?;
        }
        let keys: Vec<Keys> = queues.iter().map(Keys::of).collect();
        if self.link.is_cluster() {
            for keys in keys {
                let pattern = format!("{}*:*", escape_glob(keys.prefix()));
                self.walk(&pattern, &[keys], &mut mended).await?;
            }
        } else if !keys.is_empty() {
            self.walk("asynq:{*}:*:*", &keys, &mut mended).await?;
        }
        Ok(mended)
    }

    /// Looks at all keys of these queues, which lie on one node.
    async fn walk(&self, pattern: &str, queues: &[Keys], mended: &mut Reconciled) -> Result<(), Error> {
        let mut cursor = b"0".to_vec();
        loop {
            let began = Instant::now();
            let mut scan = redis::cmd("SCAN");
            scan.arg(&cursor[..]).arg("MATCH").arg(pattern).arg("COUNT").arg(STEP);
            let answer = self.link.call(Some(queues[0].pending().as_bytes()), scan, Kind::Write).await?;
            let (next, found) = page_of(answer)?;
            for keys in queues {
                let mine: Vec<&String> = found.iter().filter(|key| keys.is_beside_a_task(key)).collect();
                for some in mine.chunks(KEYS_MAX) {
                    self.tidy(keys, some, mended).await?;
                }
            }
            if next == b"0" {
                return Ok(());
            }
            cursor = next;
            tokio::time::sleep((began.elapsed() * REST).min(REST_MAX)).await;
        }
    }

    async fn tidy(&self, keys: &Keys, found: &[&String], mended: &mut Reconciled) -> Result<(), Error> {
        let mut call = self.call(&TIDY);
        for key in found {
            call.key((*key).clone());
        }
        call.arg(keys.prefix().to_owned());
        let mut parts = self.run(call, Kind::Write).await?;
        mended.index_entries += parts.count()?;
        mended.locks += parts.count()?;
        Ok(())
    }
}

/// The cursor and the keys of a `SCAN`; keys that are no text are none of ours.
fn page_of(answer: Value) -> Result<(Vec<u8>, Vec<String>), Error> {
    let odd = |got: &Value| Error::Corrupt { what: format!("SCAN was answered with {got:?}") };
    let Value::Array(mut parts) = answer else { return Err(odd(&answer)) };
    let (Some(Value::Array(keys)), Some(Value::BulkString(cursor))) = (parts.pop(), parts.pop()) else {
        return Err(odd(&Value::Array(parts)));
    };
    let text = |key| match key {
        Value::BulkString(bytes) => String::from_utf8(bytes).ok(),
        _ => None,
    };
    Ok((cursor, keys.into_iter().filter_map(text).collect()))
}

/// The text as a pattern that matches nothing else.
fn escape_glob(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queues_name_is_no_pattern() {
        assert_eq!(escape_glob("asynq:{a*b?[c]\\}:"), "asynq:{a\\*b\\?\\[c\\]\\\\}:");
    }
}
