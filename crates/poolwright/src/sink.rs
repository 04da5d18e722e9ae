//! Where dead letters go: the ledger first, then the application's own sinks.

use std::sync::Arc;

use poolwright_core::{BoxError, BoxFuture, DeadLetter, DeadLetterSink};
use poolwright_ledger::Ledger;

/// Records in all of them. When one fails, the letters come again to all; recording twice changes nothing.
pub(crate) struct Sinks {
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) others: Vec<Arc<dyn DeadLetterSink>>,
}

impl DeadLetterSink for Sinks {
    fn record<'a>(&'a self, letters: &'a [DeadLetter]) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async move {
            self.ledger.record(letters).await?;
            for sink in &self.others {
                sink.record(letters).await?;
            }
            Ok(())
        })
    }
}
