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
use std::pin::Pin;
use std::task::{self, Poll};

use pin_project_lite::pin_project;

thread_local! {
    /// This thread runs nothing else.
    static THREAD: Cell<bool> = const { Cell::new(false) };
    /// What runs on this thread now is marked. Only [`enter`] sets it, and gives it back when it returns.
    static HERE: Cell<bool> = const { Cell::new(false) };
}

/// This code runs for a background task.
#[must_use]
pub fn is_background() -> bool {
    THREAD.get() || HERE.get()
}

pin_project! {
    /// A future with the mark, while it is polled and while it is dropped.
    pub struct Marked<F> {
        #[pin]
        future: Option<F>,
    }

    impl<F> PinnedDrop for Marked<F> {
        fn drop(this: Pin<&mut Self>) {
            enter(|| this.project().future.set(None));
        }
    }
}

impl<F: Future> Future for Marked<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, task: &mut task::Context<'_>) -> Poll<F::Output> {
        let future = self.project().future.as_pin_mut().expect("only its own drop takes the future out");
        enter(|| future.poll(task))
    }
}

/// Runs a future with the mark. What it spawns on an unmarked runtime does not inherit it; see [`spawn`].
pub fn scope<F: Future>(future: F) -> Marked<F> {
    Marked { future: Some(future) }
}

/// Runs a function with the mark, here and now.
pub fn enter<T>(work: impl FnOnce() -> T) -> T {
    /// Gives back what was there before, also when the work panics.
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            HERE.set(self.0);
        }
    }
    let _before = Before(HERE.replace(true));
    work()
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

    #[tokio::test]
    async fn the_mark_is_there_when_the_future_is_dropped_and_gone_after_a_panic() {
        struct Looks(std::sync::mpsc::Sender<bool>);
        impl Drop for Looks {
            fn drop(&mut self) {
                self.0.send(is_background()).expect("the test listens");
            }
        }
        let (seen, sees) = std::sync::mpsc::channel();
        let looks = || {
            let looks = Looks(seen.clone());
            async move {
                let _looks = looks;
                std::future::pending::<()>().await;
            }
        };
        drop(scope(looks()));
        let mut polled = Box::pin(scope(looks()));
        assert!(futures_util::poll!(&mut polled).is_pending() && !is_background());
        drop(polled);
        assert_eq!(sees.try_iter().collect::<Vec<_>>(), [true, true]);
        assert!(std::panic::catch_unwind(|| enter(|| panic!("on purpose"))).is_err());
        assert!(!is_background());
        enter(|| enter(|| ()));
        assert!(
            !enter(|| {
                enter(|| ());
                !is_background()
            }),
            "what is inside does not end what is outside"
        );
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
