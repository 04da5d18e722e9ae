//! One connection to one server, shared by many callers.
//!
//! Invariant: an answer goes to the call it belongs to or to nobody. A call that was given up keeps its place in the line of
//! answers; a connection on which that cannot be known any more is closed.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, Pipeline, RedisConnectionInfo, Value};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::{unconstrained, yield_now};
use tokio::time::{Instant, timeout_at};

use super::driver::{Driver, Waiting};
use super::fault::CallError;
use super::patience::Patience;
use super::stream::Stream;
use crate::options::Address;

/// Until when something may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit {
    pub(super) at: Instant,
    pub(super) whole: Duration,
}

impl Limit {
    pub(super) fn of(whole: Duration) -> Self {
        Self { at: Instant::now() + whole, whole }
    }
}

/// An open connection. Dropping it closes it.
pub(super) struct Session {
    server: Arc<str>,
    address: Address,
    wire: MultiplexedConnection,
    pulse: Arc<Pulse>,
    driver: Driver,
    patience: Patience,
}

impl Session {
    /// Takes over a stream on which everything is said. To be called on the runtime that the connection shall live on.
    pub(super) async fn new(
        server: Arc<str>,
        address: Address,
        stream: Stream,
        silence_max: Duration,
        spin_max: Duration,
    ) -> Result<Self, CallError> {
        let led = stream.led();
        let pulse = Arc::new(Pulse::new(silence_max));
        let stream = Overheard { stream, pulse: Arc::clone(&pulse) };
        let mine = RedisConnectionInfo::default().set_skip_set_lib_name();
        // The limits of time are ours: the library's would also end a wait that is meant to be long.
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let opened = MultiplexedConnection::new_with_config(&mine, stream, config).await;
        let (wire, work) = opened.map_err(|error| CallError::broken(&server, &error))?;
        let ending = Ending(Arc::clone(&pulse));
        let driver = Driver::start(led, async move {
            let _ending = ending;
            work.await;
        });
        Ok(Self { server, address, wire, pulse, driver, patience: Patience::new(spin_max) })
    }

    pub(super) const fn address(&self) -> &Address {
        &self.address
    }

    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// New calls may be sent on it.
    pub(super) fn is_usable(&self) -> bool {
        !self.pulse.retired.load(Ordering::Acquire)
    }

    /// No new calls: those that are on their way may still end.
    pub(super) fn retire(&self) {
        self.pulse.retired.store(true, Ordering::Release);
    }

    /// How long it has been open.
    pub(super) fn age(&self) -> Duration {
        self.pulse.born.elapsed()
    }

    /// Sends one command. Without a limit it waits as long as the connection lives.
    pub(super) async fn call(&self, cmd: &Cmd, limit: Option<Limit>) -> Result<Value, CallError> {
        let mut wire = self.wire.clone();
        match self.within(limit, wire.send_packed_command(cmd)).await? {
            Value::ServerError(error) => Err(self.said(CallError::said(&self.server, &error))),
            value => Ok(value),
        }
    }

    /// Sends several commands with nothing between them; each has its own answer.
    pub(super) async fn pipeline(
        &self,
        pipeline: &Pipeline,
        limit: Limit,
    ) -> Result<Vec<Result<Value, CallError>>, CallError> {
        let mut wire = self.wire.clone();
        let answers =
            self.within(Some(limit), wire.send_packed_commands(pipeline, 0, pipeline.len())).await?;
        let each = answers.into_iter().map(|answer| match answer {
            Value::ServerError(error) => Err(self.said(CallError::said(&self.server, &error))),
            value => Ok(value),
        });
        Ok(each.collect())
    }

    async fn within<T>(
        &self,
        limit: Option<Limit>,
        exchange: impl Future<Output = Result<T, redis::RedisError>>,
    ) -> Result<T, CallError> {
        let exchange = self.answer(exchange);
        let answer = match limit {
            None => exchange.await,
            Some(limit) => match timeout_at(limit.at, exchange).await {
                Ok(answer) => answer,
                Err(_) => {
                    if self.pulse.is_silent_for_too_long() {
                        self.retire();
                        self.driver.stop();
                    }
                    return Err(CallError::late(&self.server, limit.whole));
                }
            },
        };
        answer.map_err(|error| {
            self.retire();
            CallError::broken(&self.server, &error)
        })
    }

    /// Waits for an answer, awake as long as that pays.
    async fn answer<T>(&self, exchange: impl Future<Output = T>) -> T {
        let mut waiting = self.driver.wait();
        let mut exchange = pin!(exchange);
        if let Some(most) = self.patience.of_next(self.pulse.quiet(), waiting.others()) {
            waiting.lead();
            match self.look(&waiting, exchange.as_mut(), most).await {
                Some(answer) => {
                    self.patience.hit();
                    return answer;
                }
                None => self.patience.missed(),
            }
            waiting.sleep();
        }
        exchange.await
    }

    /// Looks for an answer for at most `most`.
    async fn look<T>(
        &self,
        waiting: &Waiting<'_>,
        exchange: Pin<&mut impl Future<Output = T>>,
        most: Duration,
    ) -> Option<T> {
        let mut exchange = pin!(unconstrained(exchange));
        // Elsewhere the server itself may want this thread, or a neighbour of the caller.
        let shares = Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread;
        let until = std::time::Instant::now() + most;
        loop {
            let asked_twice = poll_fn(|cx| {
                let first = exchange.as_mut().poll(cx);
                if first.is_ready() {
                    return Poll::Ready(first);
                }
                waiting.drive();
                Poll::Ready(exchange.as_mut().poll(cx))
            });
            if let Poll::Ready(answer) = asked_twice.await {
                return Some(answer);
            }
            if std::time::Instant::now() >= until {
                return None;
            }
            if shares {
                yield_now().await;
            } else {
                std::thread::yield_now();
            }
        }
    }

    fn said(&self, error: CallError) -> CallError {
        if error.means_other_role() {
            self.retire();
        }
        error
    }
}

/// Signs of life of a connection. Times are microseconds since it was made, and 0 is never.
struct Pulse {
    born: Instant,
    silence_max: Duration,
    retired: AtomicBool,
    heard_us: AtomicU64,
    first_late_us: AtomicU64,
}

impl Pulse {
    fn new(silence_max: Duration) -> Self {
        Self {
            born: Instant::now(),
            silence_max,
            retired: AtomicBool::new(false),
            heard_us: AtomicU64::new(0),
            first_late_us: AtomicU64::new(0),
        }
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_micros()).unwrap_or(u64::MAX).max(1)
    }

    /// How long ago something came.
    fn quiet(&self) -> Duration {
        Duration::from_micros(self.now_us().saturating_sub(self.heard_us.load(Ordering::Relaxed)))
    }

    /// To be asked when an answer is late. Idle connections are silent, too, so silence counts from the first late answer.
    fn is_silent_for_too_long(&self) -> bool {
        let now = self.now_us();
        let first = self.first_late_us.load(Ordering::Relaxed);
        if first == 0 || self.heard_us.load(Ordering::Relaxed) >= first {
            self.first_late_us.store(now, Ordering::Relaxed);
            return false;
        }
        u128::from(now - first) >= self.silence_max.as_micros()
    }
}

/// Notes the end of a connection, also when its task is aborted.
struct Ending(Arc<Pulse>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.retired.store(true, Ordering::Release);
    }
}

/// A stream whose signs of life are noted.
struct Overheard {
    stream: Stream,
    pulse: Arc<Pulse>,
}

impl AsyncRead for Overheard {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, into);
        if read.is_ready() {
            self.pulse.heard_us.store(self.pulse.now_us(), Ordering::Relaxed);
        }
        read
    }
}

impl AsyncWrite for Overheard {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
