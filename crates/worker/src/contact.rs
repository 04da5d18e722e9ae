//! Whether the store answers: said once when it goes away and once when it is back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use poolwright_broker::Error;
use tokio::sync::Notify;

/// What the last calls of all loops say about the store.
#[derive(Debug, Default)]
pub(crate) struct Contact {
    away: AtomicBool,
    outages: AtomicU64,
    /// Wakes whoever watches the status.
    changed: Arc<Notify>,
}

impl Contact {
    pub(crate) fn new(changed: Arc<Notify>) -> Self {
        Self { changed, ..Self::default() }
    }

    /// Learns from the answer to a call that only looks. It may be answered while nothing can be written, so an answer is
    /// no sign that the store is back.
    pub(crate) fn note_look<T>(&self, answer: &Result<T, Error>) {
        if answer.as_ref().is_err_and(Error::is_retryable) {
            self.note(answer);
        }
    }

    /// Learns from the answer to a call.
    pub(crate) fn note<T>(&self, answer: &Result<T, Error>) {
        match answer {
            Err(error) if error.is_retryable() => {
                if !self.away.swap(true, Ordering::Relaxed) {
                    self.outages.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!(%error, "the store is away: what runs goes on, results are kept");
                    self.changed.notify_waiters();
                }
            }
            // A refusal is an answer.
            _ => {
                if self.away.load(Ordering::Relaxed) && self.away.swap(false, Ordering::Relaxed) {
                    tracing::info!("the store is back");
                    self.changed.notify_waiters();
                }
            }
        }
    }

    /// The last call got no answer.
    pub(crate) fn is_away(&self) -> bool {
        self.away.load(Ordering::Relaxed)
    }

    /// How often it has gone away.
    pub(crate) fn outages(&self) -> u64 {
        self.outages.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_counted_once_however_many_calls_it_fails() {
        let contact = Contact::default();
        let away = || Err::<(), _>(Error::Unavailable { why: "gone".into() });
        contact.note(&away());
        contact.note(&away());
        assert!(contact.is_away());
        contact.note::<()>(&Err(Error::Refused { why: "read-only".into() }));
        assert!(!contact.is_away());
        contact.note_look(&away());
        contact.note_look(&Ok(()));
        assert!(contact.is_away(), "that it can be read does not say that it can be written");
        contact.note(&Ok(()));
        assert_eq!((contact.is_away(), contact.outages()), (false, 2));
    }
}
