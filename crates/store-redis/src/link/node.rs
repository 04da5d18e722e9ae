//! One server, or the primary that sentinels name: a place where there is a session most of the time.
//!
//! Invariant: at most one attempt to connect is under way, and between attempts there is a wait that all callers share. Nothing
//! runs while nobody calls.
//!
//! ```text
//!            a call comes, the wait is over              connected
//!   Down ──────────────────────────────────► Opening ──────────────► Up
//!    ▲ ◄───────────────────────────────────────┘ failed              │
//!    └───────────────────────────────────────────────────────────────┘ the session has ended, or its server another role
//! ```

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use poolwright_core::Chance;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::dial::Dialer;
use super::fault::CallError;
use super::sentinel::Sentinels;
use super::session::{Limit, Session};
use crate::options::{Address, RedisOptions};

/// Counts reconnections; everybody who holds one counts on the same counter.
pub(super) type Epoch = Arc<watch::Sender<u64>>;

/// How long is waited between attempts.
#[derive(Clone)]
pub(super) struct Backoff {
    min: Duration,
    max: Duration,
    chance: Chance,
}

impl Backoff {
    pub(super) fn new(options: &RedisOptions) -> Self {
        Self { min: options.backoff_min, max: options.backoff_max, chance: options.chance.clone() }
    }

    pub(super) const fn max(&self) -> Duration {
        self.max
    }

    /// The wait after so many failures in a row, at least one.
    pub(super) fn wait(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(20);
        let whole = self.min.saturating_mul(1 << doublings).min(self.max);
        whole.mul_f64(1.0 - self.chance.roll() / 2.0)
    }
}

/// Where the server is.
pub(super) enum Finder {
    At(Address),
    Sentinels(Box<Sentinels>),
}

/// A server and the session with it. Cheap to clone.
#[derive(Clone)]
pub(super) struct Node(Arc<Inner>);

struct Inner {
    dialer: Dialer,
    finder: Finder,
    backoff: Backoff,
    epoch: Epoch,
    /// There was a session before.
    met: AtomicBool,
    state: Mutex<State>,
}

enum State {
    /// No session; the next attempt is not before `again`.
    Down {
        again: Instant,
        failures: u32,
        why: Option<CallError>,
    },
    /// An attempt is under way; its end is told to everybody.
    Opening(watch::Receiver<Option<Outcome>>),
    /// There is a session. So many attempts failed before it.
    Up {
        session: Arc<Session>,
        failures: u32,
    },
    Closed,
}

type Outcome = Result<Arc<Session>, CallError>;

impl Node {
    pub(super) fn new(dialer: Dialer, finder: Finder, backoff: Backoff, epoch: Epoch) -> Self {
        let state = Mutex::new(State::Down { again: Instant::now(), failures: 0, why: None });
        Self(Arc::new(Inner { dialer, finder, backoff, epoch, met: AtomicBool::new(false), state }))
    }

    /// The session, made now if there is none and the time has come for another attempt.
    pub(super) async fn session(&self, limit: Limit) -> Outcome {
        let mut opening = match self.0.session_or_opening(self) {
            Ok(session) => return Ok(session),
            Err(Absence::Told(error)) => return Err(error),
            Err(Absence::Opening(opening)) => opening,
        };
        let end = timeout_at(limit.at, opening.wait_for(Option::is_some)).await;
        match end {
            Ok(Ok(outcome)) => outcome.clone().expect("it was waited for"),
            Ok(Err(_)) => Err(CallError::no_runtime()),
            Err(_) => {
                let ms = limit.whole.as_millis();
                Err(CallError::unreachable(format!("{} could not be reached within {ms} ms", self.name())))
            }
        }
    }

    /// The dialer of this server, for connections beside the session.
    pub(super) fn dialer(&self) -> &Dialer {
        &self.0.dialer
    }

    /// There is a session now.
    pub(super) fn is_up(&self) -> bool {
        matches!(&*self.0.lock(), State::Up { session, .. } if session.is_usable())
    }

    /// Calls from now on are refused; those on their way may end.
    pub(super) fn close(&self) {
        *self.0.lock() = State::Closed;
    }

    fn name(&self) -> String {
        match &self.0.finder {
            Finder::At(address) => self.0.dialer.name(address),
            Finder::Sentinels(sentinels) => sentinels.name(),
        }
    }
}

/// Why there is no session at once.
enum Absence {
    Told(CallError),
    Opening(watch::Receiver<Option<Outcome>>),
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session_or_opening(&self, node: &Node) -> Result<Arc<Session>, Absence> {
        let mut state = self.lock();
        if let State::Up { session, failures } = &*state {
            if session.is_usable() {
                return Ok(Arc::clone(session));
            }
            *state = self.after(session, *failures);
        }
        match &*state {
            State::Opening(opening) => Err(Absence::Opening(opening.clone())),
            State::Closed => Err(Absence::Told(CallError::closed())),
            State::Down { again, why: Some(why), .. } if Instant::now() < *again => {
                Err(Absence::Told(why.clone().before("no new attempt yet")))
            }
            State::Down { failures, .. } => {
                let (tell, told) = watch::channel(None);
                let failures = *failures;
                *state = State::Opening(told.clone());
                drop(state);
                let node = node.clone();
                self.dialer.detach(async move { node.0.open(failures, &tell).await });
                Err(Absence::Opening(told))
            }
            State::Up { .. } => unreachable!("a session that is of no use was just put away"),
        }
    }

    /// A session is replaced at once, but the second and later ones in a row that lived only for moments count as failures.
    fn after(&self, session: &Session, failures: u32) -> State {
        if session.age() >= self.backoff.max {
            return State::Down { again: Instant::now(), failures: 0, why: None };
        }
        if failures == 0 {
            return State::Down { again: Instant::now(), failures: 1, why: None };
        }
        let failures = failures.saturating_add(1);
        let why = CallError::unreachable(format!("{} closed the connection", session.server()));
        State::Down { again: Instant::now() + self.backoff.wait(failures), failures, why: Some(why) }
    }

    async fn open(&self, failures: u32, tell: &watch::Sender<Option<Outcome>>) {
        let outcome = self.find_and_dial().await.map(Arc::new);
        let mut state = self.lock();
        let outcome = match (&*state, outcome) {
            (State::Closed, _) => Err(CallError::closed()),
            (_, Ok(session)) => {
                // Before anybody can use the session: who compares epochs must not miss it.
                if self.met.swap(true, Ordering::Relaxed) {
                    self.epoch.send_modify(|epoch| *epoch += 1);
                }
                *state = State::Up { session: Arc::clone(&session), failures };
                Ok(session)
            }
            (_, Err(error)) => {
                let failures = failures.saturating_add(1);
                let again = Instant::now() + self.backoff.wait(failures);
                *state = State::Down { again, failures, why: Some(error.clone()) };
                Err(error)
            }
        };
        drop(state);
        tell.send_replace(Some(outcome));
    }

    async fn find_and_dial(&self) -> Result<Session, CallError> {
        let sentinels = match &self.finder {
            Finder::At(address) => return self.dialer.session(address).await,
            Finder::Sentinels(sentinels) => sentinels,
        };
        let address = sentinels.primary().await?;
        let session = self.dialer.session(&address).await;
        if session.is_err() {
            // What it said may be old: the next attempt begins with another one.
            sentinels.distrust();
        }
        session
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound_and_differ() {
        let ms = Duration::from_millis;
        let backoff = Backoff { min: ms(50), max: ms(2_000), chance: Chance::seeded(7) };
        for (failures, whole) in [(1, 50), (2, 100), (3, 200), (6, 1_600), (7, 2_000), (u32::MAX, 2_000)] {
            let (one, two) = (backoff.wait(failures), backoff.wait(failures));
            assert!(one <= ms(whole) && one >= ms(whole / 2), "{failures}: {one:?}");
            assert_ne!(one, two);
        }
    }
}
