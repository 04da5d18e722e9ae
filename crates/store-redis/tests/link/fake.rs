//! A server that is none: it answers as a test wishes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Ends with its value.
pub(crate) struct Fake {
    pub(crate) port: u16,
    connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Fake {
    /// Answers every command by what `answer` makes of its text.
    pub(crate) async fn start(answer: impl Fn(&str) -> String + Clone + Send + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(talk(stream, answer.clone()));
            }
        });
        Self { port, connections, task }
    }

    /// Closes every connection at once.
    pub(crate) async fn slamming() -> Self {
        Self::start(|_| String::new()).await
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Commands come one at a time in greetings and checks, so what is read at once is one command.
async fn talk(mut stream: TcpStream, answer: impl Fn(&str) -> String) {
    let mut bytes = [0; 4_096];
    loop {
        let len = stream.read(&mut bytes).await.unwrap_or(0);
        let asked = String::from_utf8_lossy(&bytes[..len]).into_owned();
        let answer = answer(&asked);
        if len == 0 || answer.is_empty() || stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// An answer of `INFO`.
pub(crate) fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}
