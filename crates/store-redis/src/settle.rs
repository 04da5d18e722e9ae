//! Settlements as their script takes them: those of tasks that are simply done in groups, all others one by one.
//!
//! A group is what the quick way of the script ends together, so it holds only tasks of which this process knows all that their
//! end has to look after: where they stand in the index, that they hold no lock, and what their lease says. The script sees for
//! itself whether a follow-up has come meanwhile.

use std::collections::HashSet;
use std::time::Duration;

use poolwright_broker::{Error, Held, Settled};
use poolwright_core::text::error_text;
use poolwright_core::{Charge, Settlement};

use crate::RedisStore;
use crate::dispatch::{token, write_held};
use crate::held::Running;
use crate::notes::member;
use crate::record::score_of;
use crate::reply::Parts;
use crate::script::{Call, SETTLE};
use crate::store::Batch;
use crate::submit::{micros, state};

/// The most tasks of a group: Lua passes no more than some thousands of values to a command.
const GROUP_MAX: usize = 500;

/// Settlements on their way.
pub(crate) struct Settling {
    batch: Batch<(Held, Settlement)>,
    groups: Vec<Group>,
    /// Places in the batch of those in no group.
    others: Vec<usize>,
}

/// Tasks of one queue that are done, the oldest claim first.
struct Group {
    queue: usize,
    in_index: bool,
    /// Places in the batch.
    tasks: Vec<(usize, Running)>,
}

impl Settling {
    /// The call that settles them.
    pub(crate) fn call(&self, store: &RedisStore) -> Call {
        let mut call = store.call_for(&SETTLE, &self.batch);
        call.number(count(self.groups.len()));
        for group in &self.groups {
            call.number(count(group.queue)).number(count(group.tasks.len())).flag(group.in_index);
            let held = |at: usize| &self.batch.items[at].2.0;
            for (at, _) in &group.tasks {
                call.arg(held(*at).key.id.as_str().to_owned());
            }
            for (at, _) in &group.tasks {
                call.arg(token(held(*at)));
            }
            for (_, task) in &group.tasks {
                call.number(score_of(task.lease_until));
            }
            if group.in_index {
                for (at, _) in &group.tasks {
                    call.arg(member(held(*at).key.id.as_str()));
                }
                for (_, task) in &group.tasks {
                    call.arg(task.entries.clone());
                }
            }
        }
        for &at in &self.others {
            let (_, number, (held, settlement)) = &self.batch.items[at];
            write_held(&mut call, *number, held);
            write_settlement(&mut call, settlement);
        }
        call
    }

    /// Places in the batch, in the order in which the script answers.
    fn order(&self) -> impl Iterator<Item = usize> {
        let grouped = self.groups.iter().flat_map(|group| group.tasks.iter().map(|(at, _)| *at));
        grouped.chain(self.others.iter().copied())
    }
}

impl RedisStore {
    /// Sorts settlements.
    pub(crate) fn settling(&self, batch: Batch<(Held, Settlement)>) -> Settling {
        let mut met = HashSet::with_capacity(batch.items.len());
        let (mut done, mut others) = (Vec::with_capacity(batch.items.len()), Vec::new());
        for (at, (_, number, (held, settlement))) in batch.items.iter().enumerate() {
            // Of an id that comes twice the second is looked at once the first is done.
            let is_first = met.insert((number, &held.key.id));
            match self.done_with(held, settlement).filter(|_| is_first) {
                Some(task) => done.push((*number, !task.entries.is_empty(), at, task)),
                None => others.push(at),
            }
        }
        done.sort_unstable_by_key(|(queue, in_index, _, task)| (*queue, *in_index, task.nth));
        let mut groups: Vec<Group> = Vec::new();
        for (queue, in_index, at, task) in done {
            let fits = |group: &&mut Group| {
                group.queue == queue && group.in_index == in_index && group.tasks.len() < GROUP_MAX
            };
            match groups.last_mut().filter(fits) {
                Some(group) => group.tasks.push((at, task)),
                None => groups.push(Group { queue, in_index, tasks: vec![(at, task)] }),
            }
        }
        drop(met);
        Settling { batch, groups, others }
    }

    /// What is known of a task that ends without a trace; none when more has to be done than to take it away.
    fn done_with(&self, held: &Held, settlement: &Settlement) -> Option<Running> {
        let is_done = matches!(settlement, Settlement::Complete { retain_for: Duration::ZERO, .. });
        self.held.get(&held.key).filter(|task| is_done && !task.leaves_more && task.token == Some(held.token))
    }

    /// Reads what became of them.
    pub(crate) fn settled(
        &self,
        settling: Settling,
        mut parts: Parts,
        outcomes: &mut [Option<Result<Settled, Error>>],
    ) -> Result<(), Error> {
        let at = parts.at;
        for place in settling.order() {
            let (asked, _, (held, _)) = &settling.batch.items[place];
            let key = held.key.clone();
            self.held.remove(held);
            outcomes[*asked] = Some(match parts.text()?.as_str() {
                "gone" => Ok(Settled { state: None, at }),
                "lost" => Err(Error::LeaseLost { key }),
                "missing" => Err(Error::NotFound { key }),
                word => Ok(Settled { state: Some(state(word)?), at }),
            });
        }
        self.wake(&settling.batch.queues, parts.list()?)
    }
}

fn count(number: usize) -> i128 {
    i128::try_from(number).unwrap_or(0)
}

/// What, microseconds, text, class, charge, result, whether there is one.
fn write_settlement(call: &mut Call, settlement: &Settlement) {
    let (what, time) = match settlement {
        Settlement::Complete { retain_for, .. } => ("complete", *retain_for),
        Settlement::Retry { after, .. } => ("retry", *after),
        Settlement::Archive { .. } => ("archive", Duration::ZERO),
        Settlement::Discard => ("discard", Duration::ZERO),
        Settlement::Release => ("release", Duration::ZERO),
        Settlement::Hold { .. } => ("hold", Duration::ZERO),
    };
    let (text, class) = match settlement {
        Settlement::Retry { error, class, .. } | Settlement::Archive { error, class } => {
            (error_text(error), class.as_str())
        }
        Settlement::Hold { reason } => (error_text(reason), ""),
        _ => (String::new(), ""),
    };
    let charge = match settlement {
        Settlement::Retry { charge: Charge::Retry, .. } => "retry",
        Settlement::Retry { charge: Charge::Deferral, .. } => "deferral",
        Settlement::Retry { charge: Charge::Crash, .. } => "crash",
        _ => "nothing",
    };
    let result = match settlement {
        Settlement::Complete { result, .. } => result.clone(),
        _ => None,
    };
    call.arg(what).number(micros(time)).arg(text).arg(class).arg(charge);
    call.arg(result.clone().unwrap_or_default()).flag(result.is_some());
}
