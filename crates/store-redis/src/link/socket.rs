//! A socket that need not be watched.
//!
//! A runtime is told by the system of each byte that comes for a socket it watches, and wakes a thread for it. While a caller
//! looks for its answer itself, that thread would only take its processor. So the watch ends when the socket is led, and
//! begins again with the first look of whoever wants to be woken.
//!
//! ```text
//!   led:      not watched; read ── nothing there ──► whoever leads looks again
//!   not led:  watched;     read ── nothing there ──► woken by the next bytes
//! ```
//!
//! Invariant: a look that was not led and found nothing is woken by what comes.

use std::io::{self, ErrorKind, Read, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How many bytes one read takes at most while it is led.
const ROOM: usize = 16 * 1024;

/// Whether the one who polls a socket looks again by itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Led(Arc<AtomicBool>);

impl Led {
    pub(super) fn set(&self, led: bool) {
        self.0.store(led, Ordering::Release);
    }

    pub(super) fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A stream that a runtime watches, and the same without.
pub(super) trait Watched: AsyncRead + AsyncWrite + Unpin + Sized {
    /// It does not block.
    type Plain;

    /// To be called on the runtime that shall watch it.
    fn watch(plain: Self::Plain) -> io::Result<Self>;

    fn leave(self) -> io::Result<Self::Plain>;
}

macro_rules! watched {
    ($stream:ty, $plain:ty) => {
        impl Watched for $stream {
            type Plain = $plain;

            fn watch(plain: Self::Plain) -> io::Result<Self> {
                Self::from_std(plain)
            }

            fn leave(self) -> io::Result<Self::Plain> {
                self.into_std()
            }
        }
    };
}

watched!(tokio::net::TcpStream, std::net::TcpStream);
#[cfg(unix)]
watched!(tokio::net::UnixStream, std::os::unix::net::UnixStream);

/// A connected socket.
pub(super) struct Socket<W: Watched> {
    state: State<W>,
    room: Box<[u8]>,
    led: Led,
}

enum State<W: Watched> {
    Watched(W),
    Plain(W::Plain),
    /// The system would not change it.
    Lost,
}

/// What is done next is done on this.
enum Hand<'a, W: Watched> {
    Watched(Pin<&'a mut W>),
    Plain(&'a W::Plain, &'a mut [u8]),
}

impl<W: Watched> Socket<W> {
    pub(super) fn new(stream: W, led: Led) -> Self {
        Self { state: State::Watched(stream), room: vec![0; ROOM].into_boxed_slice(), led }
    }

    /// Watched if it is not led.
    fn hand(&mut self) -> io::Result<Hand<'_, W>> {
        let led = self.led.get();
        if led != matches!(self.state, State::Plain(_)) {
            self.state = match std::mem::replace(&mut self.state, State::Lost) {
                State::Watched(stream) => State::Plain(stream.leave()?),
                State::Plain(plain) => State::Watched(W::watch(plain)?),
                State::Lost => State::Lost,
            };
        }
        match &mut self.state {
            State::Watched(stream) => Ok(Hand::Watched(Pin::new(stream))),
            State::Plain(plain) => Ok(Hand::Plain(plain, &mut self.room)),
            State::Lost => Err(ErrorKind::NotConnected.into()),
        }
    }
}

/// What a call said that does not block. Who leads looks again.
fn led<T>(said: io::Result<T>) -> Poll<io::Result<T>> {
    match said {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Poll::Pending,
        said => Poll::Ready(said),
    }
}

impl<W: Watched> AsyncRead for Socket<W>
where
    W::Plain: Unpin,
    for<'a> &'a W::Plain: Read,
{
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.hand()? {
            Hand::Watched(stream) => stream.poll_read(cx, into),
            Hand::Plain(mut plain, room) => {
                let most = room.len().min(into.remaining());
                let read = led(plain.read(&mut room[..most]));
                read.map_ok(|count| into.put_slice(&room[..count]))
            }
        }
    }
}

impl<W: Watched> AsyncWrite for Socket<W>
where
    W::Plain: Unpin,
    for<'a> &'a W::Plain: Write,
{
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.hand()? {
            Hand::Watched(stream) => stream.poll_write(cx, bytes),
            Hand::Plain(mut plain, _) => led(plain.write(bytes)),
        }
    }

    /// Nothing is held back.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.hand()? {
            Hand::Watched(stream) => stream.poll_shutdown(cx),
            // Dropping it comes next and closes it.
            Hand::Plain(..) => Poll::Ready(Ok(())),
        }
    }
}
