//! Many requests in one round trip.

use poolwright_broker::Enqueued;

use crate::{Client, Error, Request};

/// Requests that are sent together. Each has an outcome of its own: one that is refused does not touch the others.
///
/// ```no_run
/// # async fn f(client: poolwright_client::Client) {
/// let mut batch = client.batch();
/// for page in 0..100 {
///     batch.push(client.raw("page:fetch", format!(r#"{{"page":{page}}}"#)));
/// }
/// let refused = batch.send().await.into_iter().filter(Result::is_err).count();
/// # let _ = refused; }
/// ```
#[derive(Debug)]
#[must_use = "a batch does nothing until it is sent"]
pub struct Batch<'c> {
    client: &'c Client,
    requests: Vec<Request<'c>>,
}

impl<'c> Batch<'c> {
    pub(crate) const fn new(client: &'c Client) -> Self {
        Self { client, requests: Vec::new() }
    }

    /// Adds a request. It is sent to this batch's store, whichever client began it.
    pub fn push(&mut self, request: Request<'c>) {
        self.requests.push(request);
    }

    /// How many requests it holds.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.requests.len()
    }

    /// It holds none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Sends them; one outcome each, in order. Up to 1,000 tasks and 4 MiB of payloads go in one step; more go in
    /// parts, one after another, so that the leases of running tasks are kept meanwhile. When the store fails as a
    /// whole, every task of that part and of those after it has that error as its outcome; nothing more is sent.
    pub async fn send(self) -> Vec<Result<Enqueued, Error>> {
        let built = self.requests.into_iter().map(Request::build).collect();
        self.client.submit(built).await
    }
}

impl<'c> Extend<Request<'c>> for Batch<'c> {
    fn extend<I: IntoIterator<Item = Request<'c>>>(&mut self, requests: I) {
        self.requests.extend(requests);
    }
}
