//! Sends commands to the nodes of a cluster.
//!
//! It is ours because the client library's sends a command again when a connection breaks, and cannot be told not to.
//!
//! Invariant: a command goes to a second node only when the first has answered that it did nothing and named the other one.

mod map;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::{Cmd, Pipeline, Value};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use self::map::{Change, Map};
use super::dial::Dialer;
use super::fault::{CallError, Redirect};
use super::node::{Backoff, Epoch, Finder, Node};
use super::session::{Limit, Session};
use super::slot;
use crate::options::Address;

/// A command is sent on so often; a cluster in order needs one time, one in the middle of a move two.
const REDIRECTIONS_MAX: usize = 5;

/// One node is not asked for the map for longer than this.
const ASK_MAX: Duration = Duration::from_secs(1);

/// A cluster. Cheap to clone.
#[derive(Clone)]
pub(super) struct Cluster(Arc<Inner>);

struct Inner {
    dialer: Dialer,
    backoff: Backoff,
    epoch: Epoch,
    seeds: Vec<Address>,
    turn: AtomicUsize,
    state: Mutex<State>,
}

struct State {
    map: Map,
    refresh: Refresh,
    closed: bool,
}

/// Whether the map is being asked for.
enum Refresh {
    /// When it was last begun to be asked for, and how often in a row without news.
    Idle { last: Option<Instant>, idle_rounds: u32 },
    /// It is; the end is told to everybody.
    Running(watch::Receiver<Option<Result<(), CallError>>>),
}

/// Who was asked, and when.
struct Asked {
    address: Address,
    at: Instant,
}

impl Asked {
    fn now(session: &Session) -> Self {
        Self { address: session.address().clone(), at: Instant::now() }
    }
}

/// Whose turn a command is.
struct Target {
    session: Arc<Session>,
    /// Only this command: the slot has not moved yet.
    asking: bool,
}

impl Cluster {
    pub(super) fn new(dialer: Dialer, backoff: Backoff, epoch: Epoch, seeds: Vec<Address>) -> Self {
        let refresh = Refresh::Idle { last: None, idle_rounds: 0 };
        let state = Mutex::new(State { map: Map::default(), refresh, closed: false });
        Self(Arc::new(Inner { dialer, backoff, epoch, seeds, turn: AtomicUsize::new(0), state }))
    }

    /// The session with the owner of a key, or with any primary.
    pub(super) async fn session(&self, key: Option<&[u8]>, limit: Limit) -> Result<Arc<Session>, CallError> {
        let node = match key {
            Some(key) => self.0.lock().map.owner(slot::slot_of(key)),
            None => self.0.lock().map.any(self.0.turn.fetch_add(1, Ordering::Relaxed)),
        };
        let Some(node) = node else {
            if self.0.lock().closed {
                return Err(CallError::closed());
            }
            self.doubt();
            return Err(CallError::unreachable("no node of the cluster serves the slot of this key"));
        };
        node.session(limit).await.inspect_err(|_| self.doubt())
    }

    /// Sends one command, and sends it on as the nodes say.
    pub(super) async fn call(
        &self,
        key: Option<&[u8]>,
        cmd: &Cmd,
        limit: Limit,
        may: impl Fn() -> Result<(), CallError>,
    ) -> Result<Value, CallError> {
        let mut target = Target { session: self.session(key, limit).await?, asking: false };
        let mut redirections = 0;
        loop {
            may()?;
            let asked = Asked::now(&target.session);
            let error = match target.call(cmd, limit).await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            match error.redirect() {
                Some(redirect) if redirections < REDIRECTIONS_MAX => {
                    redirections += 1;
                    target = self.follow(key, redirect, &asked, limit).await?;
                }
                _ => {
                    self.judge(&error);
                    return Err(error);
                }
            }
        }
    }

    /// Sends several commands; those that a node sends on are sent on together.
    pub(super) async fn pipeline(
        &self,
        key: Option<&[u8]>,
        pipeline: &Pipeline,
        limit: Limit,
    ) -> Result<Vec<Result<Value, CallError>>, CallError> {
        let session = self.session(key, limit).await?;
        let mut asked = Asked::now(&session);
        let mut answers = session.pipeline(pipeline, limit).await.inspect_err(|error| self.judge(error))?;
        for _ in 0..REDIRECTIONS_MAX {
            let redirect = answers.iter().find_map(|answer| answer.as_ref().err()?.redirect().cloned());
            let Some(redirect) = redirect else { break };
            let same = |answer: &Result<Value, CallError>| {
                answer.as_ref().err().and_then(CallError::redirect) == Some(&redirect)
            };
            let group: Vec<usize> = (0..answers.len()).filter(|at| same(&answers[*at])).collect();
            let target = self.follow(key, &redirect, &asked, limit).await;
            let again = match target {
                Ok(target) => {
                    asked = Asked::now(&target.session);
                    target.pipeline(pipeline, &group, limit).await
                }
                Err(error) => Err(error),
            };
            match again {
                Ok(again) => group.iter().zip(again).for_each(|(at, answer)| answers[*at] = answer),
                Err(error) => group.iter().for_each(|at| answers[*at] = Err(error.clone())),
            }
        }
        answers.iter().filter_map(|answer| answer.as_ref().err()).for_each(|error| self.judge(error));
        Ok(answers)
    }

    /// Every primary that is known.
    pub(super) fn primaries(&self) -> Vec<Node> {
        self.0.lock().map.nodes().map(|(_, node)| node.clone()).collect()
    }

    pub(super) fn dialer(&self) -> &Dialer {
        &self.0.dialer
    }

    pub(super) fn close(&self) {
        let mut state = self.0.lock();
        state.closed = true;
        state.map.nodes().for_each(|(_, node)| node.close());
        state.map = Map::default();
    }

    /// Where a redirection leads. A slot that has moved is a reason to look at the whole map first: a failover must be noticed
    /// before its new primary gets the first command.
    async fn follow(
        &self,
        key: Option<&[u8]>,
        redirect: &Redirect,
        asked: &Asked,
        limit: Limit,
    ) -> Result<Target, CallError> {
        let Some(to) = slot::place(&redirect.place, &asked.address) else {
            return Err(CallError::unreachable(format!(
                "a node sends on to `{}`, which is no place",
                redirect.place
            )));
        };
        if redirect.moved {
            // Should it fail, the word of the node is enough.
            drop(self.refresh(Some(to.clone()), asked.at, limit).await);
        }
        let node = {
            let mut state = self.0.lock();
            if state.closed {
                return Err(CallError::closed());
            }
            let node = state.map.node(&to).unwrap_or_else(|| self.0.node(to.clone()));
            if let (true, Some(key)) = (redirect.moved, key)
                && state.map.set_owner(slot::slot_of(key), to, node.clone())
            {
                // The map that was just asked for did not tell, so it may have been a failover.
                self.0.epoch.send_modify(|epoch| *epoch += 1);
            }
            node
        };
        let session = node.session(limit).await.inspect_err(|_| self.doubt())?;
        Ok(Target { session, asking: !redirect.moved })
    }

    /// What an error says about the map.
    fn judge(&self, error: &CallError) {
        if error.code().is_none() || error.code() == Some("CLUSTERDOWN") || error.means_other_role() {
            self.doubt();
        }
    }

    /// The map may be old: somebody looks at it, unless somebody just did.
    fn doubt(&self) {
        let mut state = self.0.lock();
        if state.closed || !state.refresh.is_due(&self.0.backoff) {
            return;
        }
        self.begin(&mut state, None);
    }

    /// Asks for the map for the first time.
    pub(super) async fn learn(&self, limit: Limit) -> Result<(), CallError> {
        self.refresh(None, Instant::now(), limit).await
    }

    /// Asks for the map, with others who want it, too; not if somebody has asked since then.
    async fn refresh(&self, first: Option<Address>, since: Instant, limit: Limit) -> Result<(), CallError> {
        let mut told = {
            let mut state = self.0.lock();
            match &state.refresh {
                Refresh::Running(told) => told.clone(),
                Refresh::Idle { last: Some(last), .. } if *last > since => return Ok(()),
                Refresh::Idle { .. } => self.begin(&mut state, first),
            }
        };
        match timeout_at(limit.at, told.wait_for(Option::is_some)).await {
            Ok(Ok(end)) => end.clone().expect("it was waited for"),
            Ok(Err(_)) => Err(CallError::no_runtime()),
            Err(_) => Err(CallError::unreachable("no node of the cluster gave the map of its slots in time")),
        }
    }

    fn begin(
        &self,
        state: &mut State,
        first: Option<Address>,
    ) -> watch::Receiver<Option<Result<(), CallError>>> {
        let idle_rounds = state.refresh.idle_rounds(&self.0.backoff);
        let (tell, told) = watch::channel(None);
        state.refresh = Refresh::Running(told.clone());
        let cluster = self.clone();
        self.0.dialer.detach(async move {
            let end = cluster.0.look(first, idle_rounds).await;
            tell.send_replace(Some(end));
        });
        told
    }
}

impl Target {
    async fn call(&self, cmd: &Cmd, limit: Limit) -> Result<Value, CallError> {
        if !self.asking {
            return self.session.call(cmd, Some(limit)).await;
        }
        let mut pipeline = Pipeline::new();
        pipeline.cmd("ASKING").add_command(cmd.clone());
        let answers = self.session.pipeline(&pipeline, limit).await?;
        answers.into_iter().nth(1).expect("two commands have two answers")
    }

    async fn pipeline(
        &self,
        all: &Pipeline,
        group: &[usize],
        limit: Limit,
    ) -> Result<Vec<Result<Value, CallError>>, CallError> {
        let mut pipeline = Pipeline::new();
        for (_, cmd) in all.cmd_iter().enumerate().filter(|(at, _)| group.binary_search(at).is_ok()) {
            if self.asking {
                pipeline.cmd("ASKING");
            }
            pipeline.add_command(cmd.clone());
        }
        let answers = self.session.pipeline(&pipeline, limit).await?;
        let (skip, step) = if self.asking { (1, 2) } else { (0, 1) };
        Ok(answers.into_iter().skip(skip).step_by(step).collect())
    }
}

impl Refresh {
    fn idle_rounds(&self, backoff: &Backoff) -> u32 {
        match self {
            // What was found wrong long ago has nothing to do with today.
            Self::Idle { last: Some(last), idle_rounds } if last.elapsed() < 2 * backoff.max() => {
                *idle_rounds
            }
            _ => 0,
        }
    }

    fn is_due(&self, backoff: &Backoff) -> bool {
        match self {
            Self::Running(_) => false,
            Self::Idle { last: None, .. } => true,
            Self::Idle { last: Some(last), .. } => last.elapsed() >= backoff.wait(self.idle_rounds(backoff)),
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn node(&self, address: Address) -> Node {
        let (dialer, backoff, epoch) = (self.dialer.clone(), self.backoff.clone(), Arc::clone(&self.epoch));
        Node::new(dialer, Finder::At(address), backoff, epoch)
    }

    /// Asks one node after the other until one knows, and takes over what it says.
    async fn look(&self, first: Option<Address>, idle_rounds: u32) -> Result<(), CallError> {
        let began = Instant::now();
        let mut failed = Vec::new();
        let mut found = None;
        for address in self.candidates(first) {
            match self.ask(&address).await {
                Ok(ranges) => {
                    found = Some(ranges);
                    break;
                }
                Err(error) => failed.push(error),
            }
        }
        let mut state = self.lock();
        let idle = |idle_rounds| Refresh::Idle { last: Some(began), idle_rounds };
        let Some(ranges) = found else {
            state.refresh = idle(idle_rounds.saturating_add(1));
            return Err(CallError::all("no node of the cluster gives the map of its slots", &failed));
        };
        if state.closed {
            return Err(CallError::closed());
        }
        let change = state.map.replace(ranges, |address| self.node(address));
        let unchanged = change == Change::None;
        state.refresh = idle(if unchanged { idle_rounds.saturating_add(1) } else { 0 });
        if change == Change::Failover {
            // The lock is still held: nobody has the new primary yet.
            self.epoch.send_modify(|epoch| *epoch += 1);
        }
        Ok(())
    }

    /// Whom to ask: the one that is said to know, those with a connection, the others, the seeds.
    fn candidates(&self, first: Option<Address>) -> Vec<Address> {
        let mut known: Vec<(bool, Address)> =
            self.lock().map.nodes().map(|(address, node)| (!node.is_up(), address.clone())).collect();
        known.sort_by_key(|(is_down, _)| *is_down);
        let mut all: Vec<Address> = first.into_iter().collect();
        for address in known.into_iter().map(|(_, address)| address).chain(self.seeds.iter().cloned()) {
            if !all.contains(&address) {
                all.push(address);
            }
        }
        all
    }

    async fn ask(&self, address: &Address) -> Result<Vec<slot::Range>, CallError> {
        let limit = Limit::of(ASK_MAX);
        let node = self.lock().map.node(address);
        let session = match node {
            Some(node) => node.session(limit).await?,
            None => match timeout_at(limit.at, self.dialer.session(address)).await {
                Ok(session) => Arc::new(session?),
                Err(_) => return Err(CallError::late(&self.dialer.name(address), limit.whole)),
            },
        };
        let answer = session.call(redis::cmd("CLUSTER").arg("SLOTS"), Some(limit)).await?;
        let ranges = slot::ranges(&answer, session.address());
        let ranges = ranges.filter(|ranges| !ranges.is_empty());
        ranges.ok_or_else(|| CallError::unreachable(format!("{} knows no slots", session.server())))
    }
}
