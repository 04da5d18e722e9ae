//! The future that object-safe traits return.

use std::future::Future;
use std::pin::Pin;

/// A boxed future that can move between threads: what every method of a broker or ledger trait returns,
/// so that the store can be chosen at run time.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
