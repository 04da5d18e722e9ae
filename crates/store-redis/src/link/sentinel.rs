//! Asks sentinels where the primary is.
//!
//! Invariant: an address is only believed for one attempt to connect; the server itself has to say that it is the primary.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redis::Value;

use super::dial::Dialer;
use super::fault::CallError;
use crate::options::Address;

/// The sentinels of one primary.
pub(super) struct Sentinels {
    dialer: Dialer,
    master: String,
    /// The one that is asked first stands first.
    order: Mutex<VecDeque<Address>>,
}

impl Sentinels {
    /// `dialer` reaches sentinels.
    pub(super) fn new(dialer: Dialer, master: String, sentinels: Vec<Address>) -> Self {
        Self { dialer, master, order: Mutex::new(sentinels.into()) }
    }

    /// For messages.
    pub(super) fn name(&self) -> String {
        format!("the primary `{}` of the sentinels", self.master)
    }

    /// What the first sentinel that knows something says. To be called on the store's runtime.
    pub(super) async fn primary(&self) -> Result<Address, CallError> {
        let order: Vec<Address> = self.order().iter().cloned().collect();
        let mut failed = Vec::new();
        for sentinel in order {
            match self.ask(&sentinel).await {
                Ok(address) => {
                    self.prefer(&sentinel);
                    return Ok(address);
                }
                Err(error) => failed.push(error),
            }
        }
        Err(CallError::all(&format!("no sentinel names a primary `{}`", self.master), &failed))
    }

    /// Asks another one first, the next time.
    pub(super) fn distrust(&self) {
        self.order().rotate_left(1);
    }

    fn prefer(&self, sentinel: &Address) {
        let mut order = self.order();
        if let Some(at) = order.iter().position(|one| one == sentinel) {
            order.rotate_left(at);
        }
    }

    fn order(&self) -> MutexGuard<'_, VecDeque<Address>> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, sentinel: &Address) -> Result<Address, CallError> {
        let session = self.dialer.session(sentinel).await?;
        let mut cmd = redis::cmd("SENTINEL");
        cmd.arg("get-master-addr-by-name").arg(&self.master);
        let answer = session.call(&cmd, Some(self.dialer.connect_limit())).await;
        let name = session.server();
        match answer {
            Ok(Value::Nil) => Err(CallError::refused(format!("{name} knows no primary of this name"))),
            Ok(value) => redis::from_redis_value::<(String, u16)>(value)
                .map(|(host, port)| Address::tcp(host, port))
                .map_err(|error| CallError::refused(format!("{name} gave an unexpected answer: {error}"))),
            Err(error) if error.code() == Some("ERR") => {
                Err(CallError::refused(format!("{name} is no sentinel: write redis:// or redis-cluster://")))
            }
            Err(error) => Err(error),
        }
    }
}
