//! Run now, archive, delete: one task or the first ones of a state.

use poolwright_broker::{Bulk, BulkAction, Error};
use poolwright_core::text::error_text;
use poolwright_core::{QueueName, State, TaskKey};

use crate::RedisStore;
use crate::keys::Keys;
use crate::link::Kind;
use crate::script::{Call, OPERATE};
use crate::submit::state;

/// The most tasks that one script acts on; a server does nothing else meanwhile.
const STEP: u32 = 500;

/// States that an action takes, and how its refusal says so. `aggregating` is a state of asynq's groups.
struct Takes {
    action: &'static str,
    states: &'static str,
    wanted: &'static str,
}

const RUN_NOW: Takes = Takes {
    action: "run_now",
    states: "scheduled,retry,archived,completed,aggregating,",
    wanted: "only a scheduled, retry, archived or completed task can be run now",
};
const ARCHIVE: Takes = Takes {
    action: "archive",
    states: "pending,scheduled,retry,completed,aggregating,",
    wanted: "only a pending, scheduled, retry or completed task can be archived",
};
const DELETE: Takes = Takes {
    action: "delete",
    states: "pending,scheduled,retry,archived,completed,aggregating,",
    wanted: "only a task that is not active can be deleted",
};

impl RedisStore {
    fn operation(&self, queue: &QueueName, takes: &Takes, states: &'static str, reason: &str) -> Call {
        let keys = Keys::of(queue);
        let mut call = self.call(&OPERATE);
        call.key(keys.pending()).arg(keys.prefix().to_owned()).arg(takes.action).arg(states);
        call.arg(error_text(reason)).arg(self.token_stem());
        call
    }

    /// Acts on one task; gives the state it was in.
    pub(crate) async fn operate(
        &self,
        action: BulkAction,
        key: TaskKey,
        reason: String,
    ) -> Result<State, Error> {
        let takes = match action {
            BulkAction::RunNow => RUN_NOW,
            BulkAction::Archive => ARCHIVE,
            BulkAction::Delete => DELETE,
        };
        let mut call = self.operation(&key.queue, &takes, takes.states, &reason);
        call.arg("one").arg(key.id.as_str().to_owned());
        let mut parts = self.run(call, Kind::Write).await?;
        let (answer, word) = (parts.text()?, parts.text()?);
        if answer == "missing" {
            return Err(Error::NotFound { key });
        }
        let was = state(&word)?;
        if answer != "done" {
            return Err(Error::WrongState { key, state: was, wanted: takes.wanted });
        }
        if action == BulkAction::RunNow {
            self.bells.ring(&key.queue);
        }
        Ok(was)
    }

    /// Acts on the first tasks of a state; gives how many.
    pub(crate) async fn operate_many(&self, bulk: Bulk) -> Result<u64, Error> {
        let (takes, states) = match bulk.action {
            BulkAction::RunNow => (RUN_NOW, "scheduled,retry,archived,completed,"),
            BulkAction::Archive => (ARCHIVE, "pending,scheduled,retry,"),
            BulkAction::Delete => (DELETE, "pending,scheduled,retry,archived,completed,"),
        };
        let (mut done, mut left) = (0, bulk.limit);
        while left > 0 {
            let step = left.min(STEP);
            let mut call = self.operation(&bulk.queue, &takes, states, &bulk.reason);
            call.arg("many").arg(bulk.state.as_str()).number(step);
            let mut parts = self.run(call, Kind::Write).await?;
            let (_, some) = (parts.text()?, parts.count()?);
            done += some;
            left -= step;
            if some < u64::from(step) {
                break;
            }
        }
        if done > 0 && bulk.action == BulkAction::RunNow {
            self.bells.ring(&bulk.queue);
        }
        Ok(done)
    }
}
