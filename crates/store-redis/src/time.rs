//! The store's clock: the server's, as well as it is known here, or one that a test moves by hand.
//!
//! Invariant: whatever a script decides, it decides by the server's own clock; what is learned here serves for looking only.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use poolwright_core::clock::SystemClock;
use poolwright_core::{Clock, Timestamp};

/// Whose clock rules.
#[derive(Debug)]
pub(crate) enum Time {
    /// The server's: how many microseconds it is ahead of the host's.
    Server { host: SystemClock, ahead: AtomicI64 },
    /// A given one.
    Given(Arc<dyn Clock>),
}

impl Time {
    /// The server's clock rules.
    pub(crate) const fn server() -> Self {
        Self::Server { host: SystemClock, ahead: AtomicI64::new(0) }
    }

    /// This clock rules.
    pub(crate) fn given(clock: Arc<dyn Clock>) -> Self {
        Self::Given(clock)
    }

    /// What scripts get as their time.
    pub(crate) fn argument(&self) -> String {
        match self {
            Self::Server { .. } => String::new(),
            Self::Given(clock) => clock.now().as_micros().to_string(),
        }
    }

    /// A script said what time it is.
    pub(crate) fn learn(&self, said: Timestamp) {
        if let Self::Server { host, ahead } = self {
            let difference = said.as_micros().saturating_sub(host.now().as_micros());
            ahead.store(difference, Ordering::Relaxed);
        }
    }

    /// What time it is, within the length of a round trip.
    pub(crate) fn now(&self) -> Timestamp {
        match self {
            Self::Server { host, ahead } => {
                let now = host.now().as_micros().saturating_add(ahead.load(Ordering::Relaxed));
                Timestamp::from_micros(now)
            }
            Self::Given(clock) => clock.now(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_host_whose_clock_is_wrong_learns_the_stores_time() {
        let time = Time::server();
        let right = SystemClock.now() + Duration::from_secs(60);
        time.learn(right);
        assert!(time.now() >= right);
        assert!(time.now().since(right) < Duration::from_secs(30));
    }
}
