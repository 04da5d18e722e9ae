//! Opens byte streams to servers.
//!
//! Invariant: a peer that is gone without a word is noticed on an idle stream, too, within about half a minute.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::socket::{Led, Socket};
use super::tls::Encryption;
use crate::options::Address;

/// Anything that bytes go through.
trait Bytes: AsyncRead + AsyncWrite + Send {}

impl<S: AsyncRead + AsyncWrite + Send> Bytes for S {}

/// An open stream.
pub(super) struct Stream {
    bytes: Pin<Box<dyn Bytes>>,
    led: Led,
}

impl Stream {
    /// Bytes that come from a socket with this mark.
    pub(super) fn new(bytes: impl AsyncRead + AsyncWrite + Send + 'static, led: Led) -> Self {
        Self { bytes: Box::pin(bytes), led }
    }

    /// Who uses it says here whether it is led.
    pub(super) fn led(&self) -> Led {
        self.led.clone()
    }
}

/// Connects. The caller sets the time limit.
pub(super) async fn connect(address: &Address, encryption: Option<&Encryption>) -> io::Result<Stream> {
    let led = Led::default();
    match address {
        Address::Tcp { host, port } => {
            let stream = TcpStream::connect((host.as_str(), *port)).await?;
            stream.set_nodelay(true)?;
            SockRef::from(&stream).set_tcp_keepalive(&keepalive())?;
            let socket = Socket::new(stream, led.clone());
            match encryption {
                Some(encryption) => Ok(Stream::new(encryption.wrap(host, socket).await?, led)),
                None => Ok(Stream::new(socket, led)),
            }
        }
        #[cfg(unix)]
        Address::Unix(path) => {
            let stream = tokio::net::UnixStream::connect(path).await?;
            Ok(Stream::new(Socket::new(stream, led.clone()), led))
        }
        #[cfg(not(unix))]
        Address::Unix(_) => {
            Err(io::Error::new(io::ErrorKind::Unsupported, "there are no unix sockets on this system"))
        }
    }
}

fn keepalive() -> TcpKeepalive {
    let keepalive =
        TcpKeepalive::new().with_time(Duration::from_secs(15)).with_interval(Duration::from_secs(5));
    #[cfg(not(windows))]
    let keepalive = keepalive.with_retries(3);
    keepalive
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.bytes.as_mut().poll_read(cx, into)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.bytes.as_mut().poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.bytes.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.bytes.as_mut().poll_shutdown(cx)
    }
}
