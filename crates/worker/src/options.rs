//! Every knob of a worker, with its unit and default.

use std::time::Duration;

use poolwright_broker::LEASE_MAX;

use crate::Problem;

/// How a worker behaves. What the file of queues says about pools and types is not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How long a claimed task is ours without a sign of life; leases are extended at a third of it, and a task whose
    /// worker died is taken over about a second after it. At most [`LEASE_MAX`]. Default: 10 s.
    pub lease: Duration,
    /// How long a handler has to return after its token fired (timeout, cancel, lost lease, stop). The guard of the
    /// middleware drops it then. Default: 5 s.
    pub stop_grace: Duration,
    /// How much later than `stop_grace` the worker drops the whole chain, for layers that hang; after as long again
    /// an attempt that is still there counts as stalled. Default: 1 s.
    pub slack: Duration,
    /// How long a stalled attempt (a blocked thread, which nothing can drop) keeps its task, from when its token
    /// fired. Then the task is settled as timed out; the slot stays taken until the thread returns. Default: 10 min.
    pub max_stall: Duration,
    /// A graceful stop: how long running attempts may go on before their tokens fire. Default: 8 s.
    pub grace: Duration,
    /// A graceful stop: how long results are still offered to a store that is away. Default: 5 s.
    pub flush: Duration,
    /// A stop at once: how long it takes to give back what can be given back. Default: 1 s.
    pub hurry: Duration,
    /// From one heartbeat to the next. Default: 5 s.
    pub beat_every: Duration,
    /// How long a heartbeat lasts; an older one says nothing about a pool. Default: 10 s.
    pub beat_lasts: Duration,
    /// From one look for due tasks to the next, at least, while new tasks arrive without pause. Default: 50 ms.
    pub promote_gap: Duration,
    /// From one look for due tasks to the next, at most: notices a clock that was set. Default: 30 s.
    pub promote_at_most: Duration,
    /// From one look for expired leases to the next. Default: 500 ms, so that a task whose worker died with a fresh lease
    /// goes on within a second of its end, the look and the claim included.
    pub reclaim_every: Duration,
    /// From one sweep of expired and superfluous tasks to the next. Default: 1 min.
    pub sweep_every: Duration,
    /// From one search for what other programs left behind to the next. Default: 1 h.
    pub reconcile_every: Duration,
    /// From one look for archived tasks without a dead letter to the next. Default: 1 min.
    pub letters_every: Duration,
    /// How long the sink of dead letters may take for a batch. Default: 10 s.
    pub sink_timeout: Duration,
    /// How long a store may take for an answer; then it counts as away. Default: 30 s.
    pub call_timeout: Duration,
    /// The first pause after a failed call; doubled each time, spread by jitter. Default: 50 ms.
    pub backoff_min: Duration,
    /// The longest pause between tries. Default: 5 s.
    pub backoff_max: Duration,
    /// The most threads of a pool that does not set its own number; it has one for each worker up to this, so that a
    /// handler that blocks its thread takes no other's. Default: 32.
    pub threads_max: u32,
    /// The host's name in heartbeats; none asks the system.
    pub host: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        let secs = Duration::from_secs;
        Self {
            lease: secs(10),
            stop_grace: secs(5),
            slack: secs(1),
            max_stall: secs(600),
            grace: secs(8),
            flush: secs(5),
            hurry: secs(1),
            beat_every: secs(5),
            beat_lasts: secs(10),
            promote_gap: Duration::from_millis(50),
            promote_at_most: secs(30),
            reclaim_every: Duration::from_millis(500),
            sweep_every: secs(60),
            reconcile_every: secs(3_600),
            letters_every: secs(60),
            sink_timeout: secs(10),
            call_timeout: secs(30),
            backoff_min: Duration::from_millis(50),
            backoff_max: secs(5),
            threads_max: 32,
            host: None,
        }
    }
}

impl Options {
    /// What is wrong with them, all at once.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let positive = [
            ("lease", self.lease),
            ("beat_every", self.beat_every),
            ("promote_at_most", self.promote_at_most),
            ("reclaim_every", self.reclaim_every),
            ("sweep_every", self.sweep_every),
            ("reconcile_every", self.reconcile_every),
            ("letters_every", self.letters_every),
            ("sink_timeout", self.sink_timeout),
            ("call_timeout", self.call_timeout),
            ("backoff_min", self.backoff_min),
        ];
        let zeros = positive.into_iter().filter(|(_, value)| value.is_zero());
        let mut problems: Vec<_> = zeros
            .map(|(option, _)| Problem::BadOption { option, rule: "must be longer than zero" })
            .collect();
        let mut demand = |holds: bool, option, rule| {
            if !holds {
                problems.push(Problem::BadOption { option, rule });
            }
        };
        // A store takes a longer one for what a wrong clock wrote, and gives the task to the next.
        demand(self.lease <= LEASE_MAX, "lease", "must not be longer than an hour");
        demand(self.beat_lasts > self.beat_every, "beat_lasts", "must be longer than beat_every");
        demand(self.backoff_max >= self.backoff_min, "backoff_max", "must not be shorter than backoff_min");
        demand(self.threads_max > 0, "threads_max", "must be at least 1");
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_sound_and_all_mistakes_are_named() {
        assert!(Options::default().problems().is_empty());
        let bad = Options { lease: Duration::ZERO, beat_lasts: Duration::ZERO, ..Options::default() };
        let names: Vec<_> = bad.problems().iter().map(ToString::to_string).collect();
        assert_eq!(
            names,
            ["option lease must be longer than zero", "option beat_lasts must be longer than beat_every"]
        );
        let long = Options { lease: LEASE_MAX + Duration::from_micros(1), ..Options::default() };
        let names: Vec<_> = long.problems().iter().map(ToString::to_string).collect();
        assert_eq!(names, ["option lease must not be longer than an hour"]);
    }
}
