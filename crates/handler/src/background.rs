//! The background mark: code can ask whether it runs for a task, so that a limiter may slow background work and
//! spare interactive work.
//!
//! The mark has two carriers, and either is enough:
//!
//! - the *future* of an attempt is marked, on whatever runtime it runs;
//! - the *threads* of a runtime that runs nothing but handlers are marked, blocking ones included, so that the mark
//!   also reaches `tokio::spawn`, `spawn_blocking` and work that outlives the attempt.

use std::cell::Cell;
use std::future::Future;

thread_local! {
    static THREAD: Cell<bool> = const { Cell::new(false) };
}

tokio::task_local! {
    static FUTURE: ();
}

/// This code runs for a background task.
#[must_use]
pub fn is_background() -> bool {
    THREAD.get() || FUTURE.try_with(|()| ()).is_ok()
}

/// A future with the mark, while it is polled and while it is dropped.
pub type Marked<F> = tokio::task::futures::TaskLocalFuture<(), F>;

/// Runs a future with the mark. What it spawns on an unmarked runtime does not inherit it; see [`spawn`].
pub fn scope<F: Future>(future: F) -> Marked<F> {
    FUTURE.scope((), future)
}

/// Runs a function with the mark, here and now.
pub fn enter<T>(work: impl FnOnce() -> T) -> T {
    FUTURE.sync_scope((), work)
}

/// Spawns a future that carries the mark, on any runtime.
///
/// # Panics
/// Outside of a tokio runtime, as `tokio::spawn` does.
pub fn spawn<F>(future: F) -> tokio::task::JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(scope(future))
}

/// Runs a blocking function with the mark, on any runtime.
///
/// # Panics
/// Outside of a tokio runtime, as `tokio::task::spawn_blocking` does.
pub fn spawn_blocking<F, T>(work: F) -> tokio::task::JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    tokio::task::spawn_blocking(move || enter(work))
}

/// Marks this thread for its whole life: for the threads of a runtime that runs only handlers.
pub fn mark_thread() {
    THREAD.set(true);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_mark_covers_the_future_and_what_is_spawned_with_it() {
        assert!(!is_background());
        let seen = scope(async {
            let spawned = spawn(async { is_background() }).await.unwrap();
            let blocking = spawn_blocking(is_background).await.unwrap();
            (is_background(), spawned, blocking)
        });
        assert_eq!(seen.await, (true, true, true));
        assert!(!is_background());
    }

    #[test]
    fn a_marked_runtime_marks_all_that_runs_on_it() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .on_thread_start(mark_thread)
            .build()
            .unwrap();
        let seen = runtime.spawn(async {
            let plain = tokio::spawn(async { is_background() }).await.unwrap();
            let blocking = tokio::task::spawn_blocking(is_background).await.unwrap();
            (plain, blocking)
        });
        assert_eq!(runtime.block_on(seen).unwrap(), (true, true));
        assert!(!is_background());
    }
}
