//! A proxy before a server that loses, cuts, holds and delays what passes, so that a test chooses the moment.
//!
//! It runs on a thread of its own, so it also serves tests that block their runtime.
//!
//! Invariant: what the traffic counts has been given to the other side, or was lost on purpose; a test that got an
//! answer finds it counted.

mod carry;
mod fault;
mod line;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub use fault::{Direction, Fault};
use line::Line;
pub use line::Traffic;

use crate::error::Error;
use crate::port::Port;
use crate::server::RedisServer;

/// Listens on a free port of the loopback and passes everything on to one address, which may be down.
#[derive(Debug)]
pub struct Proxy {
    line: Arc<Line>,
    thread: Option<JoinHandle<()>>,
    url: String,
    port: Port,
}

impl Proxy {
    /// A proxy before the port of a server, which may be killed and restarted behind it.
    ///
    /// # Errors
    /// `Io` when there is no port.
    pub fn before(server: &RedisServer) -> Result<Self, Error> {
        let port = Port::free()?;
        let url = server.url_at(port.number());
        Self::on(port, url, SocketAddr::from((Ipv4Addr::LOCALHOST, server.port())))
    }

    /// A proxy before anything that listens.
    ///
    /// # Errors
    /// `Io` when there is no port.
    pub fn to(target: SocketAddr) -> Result<Self, Error> {
        let port = Port::free()?;
        let url = format!("redis://127.0.0.1:{}/0", port.number());
        Self::on(port, url, target)
    }

    fn on(port: Port, url: String, target: SocketAddr) -> Result<Self, Error> {
        let address = (Ipv4Addr::LOCALHOST, port.number());
        let listener = TcpListener::bind(address).map_err(Error::io("listen for a proxy"))?;
        let line = Arc::new(Line::new(target));
        let carried = Arc::clone(&line);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(Error::io("make the runtime of a proxy"))?;
        let thread = thread::Builder::new().name("proxy".to_owned());
        let thread = thread.spawn(move || runtime.block_on(carry::serve(listener, &carried)));
        Ok(Self { line, thread: Some(thread.map_err(Error::io("start a proxy"))?), url, port })
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// The URL of the server behind, with this port.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What has passed so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.line.traffic()
    }

    /// Waits for a state of the traffic, such as `|traffic| traffic.faults == 1`.
    ///
    /// # Errors
    /// `Overdue` when it does not come.
    pub async fn until(&self, what: &str, state: impl Fn(Traffic) -> bool) -> Result<Traffic, Error> {
        self.line.until(what, |record| state(record.traffic())).await
    }

    /// Cuts all connections that there are, and waits until they are closed; new ones may come.
    ///
    /// # Errors
    /// `Overdue` when they do not close.
    pub async fn cut(&self) -> Result<(), Error> {
        self.line.cut().await
    }

    /// Refuses new connections as a machine does on which nothing listens; those that there are live on.
    ///
    /// # Errors
    /// `Overdue` when the proxy does not come to it.
    pub async fn refuse(&self) -> Result<(), Error> {
        self.line.set_listening(false).await
    }

    /// Takes connections again.
    ///
    /// # Errors
    /// `Overdue` when the proxy does not come to it.
    pub async fn accept(&self) -> Result<(), Error> {
        self.line.set_listening(true).await
    }

    /// Holds everything back, both ways: connections are taken and silent, as behind a cable that was pulled.
    pub fn hold(&self) {
        self.line.control(|control| control.held = true);
    }

    /// Passes on what was held back, and everything after it.
    pub fn release(&self) {
        self.line.control(|control| control.held = false);
    }

    /// Holds every piece back for so long from now on; a piece is what was read at once. What waits longer than a
    /// delay that is set later passes then.
    pub fn delay(&self, delay: Duration) {
        self.line.control(|control| control.delay = delay);
    }

    /// Makes something go wrong, in place of what was armed before. `traffic` counts what has happened of it.
    pub fn arm(&self, fault: Fault) {
        self.line.control(|control| control.fault = Some(fault));
    }

    /// Nothing more goes wrong. It returns what had not happened yet.
    pub fn disarm(&self) -> Option<Fault> {
        self.line.control(|control| control.fault.take())
    }

    /// Waits until one armed fault after another has happened, `count` since the start.
    ///
    /// # Errors
    /// `Overdue` when it does not happen.
    pub async fn until_faults(&self, count: u64) -> Result<Traffic, Error> {
        self.until(&format!("fault {count} to happen"), |traffic| traffic.faults >= count).await
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.line.control(|control| control.stopped = true);
        if let Some(thread) = self.thread.take() {
            // A proxy that panicked has told so on stderr, and its connections are gone.
            let _ = thread.join();
        }
    }
}
