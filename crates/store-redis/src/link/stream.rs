//! Opens byte streams to servers.
//!
//! Invariant: a peer that is gone without a word is noticed on an idle stream, too, within about half a minute.

use std::io;
use std::pin::Pin;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::tls::Encryption;
use crate::options::Address;

/// Anything that bytes go through.
pub(super) trait Bytes: AsyncRead + AsyncWrite + Send {}

impl<S: AsyncRead + AsyncWrite + Send> Bytes for S {}

/// An open stream.
pub(super) type Stream = Pin<Box<dyn Bytes>>;

/// Connects. The caller sets the time limit.
pub(super) async fn connect(address: &Address, encryption: Option<&Encryption>) -> io::Result<Stream> {
    match address {
        Address::Tcp { host, port } => {
            let stream = TcpStream::connect((host.as_str(), *port)).await?;
            stream.set_nodelay(true)?;
            SockRef::from(&stream).set_tcp_keepalive(&keepalive())?;
            match encryption {
                Some(encryption) => Ok(Box::pin(encryption.wrap(host, stream).await?)),
                None => Ok(Box::pin(stream)),
            }
        }
        #[cfg(unix)]
        Address::Unix(path) => Ok(Box::pin(tokio::net::UnixStream::connect(path).await?)),
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
