//! The tiny client: sends a command, reads its answer. Enough for a test to look past the code that it tests.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use crate::error::Error;
use crate::reply::{self, Reply};
use crate::wait;

/// One connection, on which transactions, selected databases and blocking commands keep their state.
///
/// Not safe against a dropped call: a command whose future is dropped leaves its answer for the next one.
pub struct Connection {
    stream: Box<dyn Stream>,
    unread: Vec<u8>,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Connection {
    /// Connects to a socket in the file system.
    ///
    /// # Errors
    /// `Io` when nobody listens there.
    pub async fn unix(path: &Path) -> Result<Self, Error> {
        let stream = UnixStream::connect(path).await;
        Ok(Self::on(stream.map_err(Error::io(format!("connect to {}", path.display())))?))
    }

    /// Connects to a port.
    ///
    /// # Errors
    /// `Io` when nobody listens there.
    pub async fn tcp(address: SocketAddr) -> Result<Self, Error> {
        let stream = TcpStream::connect(address).await;
        Ok(Self::on(stream.map_err(Error::io(format!("connect to {address}")))?))
    }

    fn on(stream: impl Stream + 'static) -> Self {
        Self { stream: Box::new(stream), unread: Vec::new() }
    }

    /// Sends one command and awaits its answer.
    ///
    /// # Errors
    /// `Refused` when the answer is an error, `Io` when the connection broke, `Overdue` when no answer comes.
    pub async fn command(&mut self, args: &[impl AsRef<[u8]>]) -> Result<Reply, Error> {
        let name = spoken(args);
        let answer = wait::at_most(format!("the answer to {name}"), self.ask(args)).await?;
        match answer.map_err(Error::io(name.clone()))? {
            Reply::Error(message) => Err(Error::Refused { command: name, message }),
            reply => Ok(reply),
        }
    }

    /// Awaits a further answer: a message of a subscription, or those that follow `MONITOR`.
    ///
    /// # Errors
    /// `Io` when the connection broke, `Overdue` when nothing comes.
    pub async fn next(&mut self) -> Result<Reply, Error> {
        wait::at_most("a message".to_owned(), self.read()).await?.map_err(Error::io("read a message"))
    }

    async fn ask(&mut self, args: &[impl AsRef<[u8]>]) -> io::Result<Reply> {
        self.stream.write_all(&reply::encode(args)).await?;
        self.read().await
    }

    async fn read(&mut self) -> io::Result<Reply> {
        loop {
            let decoded = reply::decode(&self.unread);
            let decoded =
                decoded.map_err(|malformed| io::Error::new(io::ErrorKind::InvalidData, malformed.0));
            if let Some((reply, length)) = decoded? {
                self.unread.drain(..length);
                return Ok(reply);
            }
            if self.stream.read_buf(&mut self.unread).await? == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"));
            }
        }
    }
}

/// The command as a message shows it.
fn spoken(args: &[impl AsRef<[u8]>]) -> String {
    const SHOWN: usize = 60;
    let words = args.iter().map(|arg| arg.as_ref().escape_ascii().to_string()).collect::<Vec<_>>().join(" ");
    // Escaped text is ASCII, so every place is a boundary.
    if words.len() > SHOWN { format!("{}…", &words[..SHOWN]) } else { words }
}
