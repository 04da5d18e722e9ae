//! A server of a test's own, which the test may break.
//!
//! Invariant: a value that exists has a directory and a port of its own; its process may be running, paused or gone,
//! and dropping the value ends the one and removes the other.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fmt, io, thread};

use tempfile::TempDir;

use crate::connection::Connection;
use crate::error::Error;
use crate::options::{Kind, Options};
use crate::port::Port;
use crate::process::Process;
use crate::reply::Reply;
use crate::tls::TlsFiles;
use crate::wait;

const CONFIG: &str = "redis.conf";
const LOG: &str = "redis.log";
const SOCKET: &str = "redis.sock";

/// How often another port is tried when a stranger took the first in the moment between our look and the start.
const PORTS_MAX: usize = 5;

/// Lines of a log that help a reader.
const TAIL_LINES: usize = 12;

/// One `redis-server` on a free port of the loopback and on a socket, in a directory of its own.
#[derive(Debug)]
pub struct RedisServer {
    // In the order in which they go: the process first, then its directory, then its port.
    process: Mutex<Option<Process>>,
    dir: TempDir,
    port: Port,
    options: Options,
}

/// What a restarted server finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Data {
    /// All of it if the server was still running; else what it had written: everything with `append_only`, nothing
    /// without.
    Kept,
    /// None.
    Lost,
}

impl RedisServer {
    /// Starts an empty server that keeps its data in memory only.
    ///
    /// # Errors
    /// As [`Options::start`].
    pub async fn start() -> Result<Self, Error> {
        Self::options().start().await
    }

    /// Begins to say what the server should be like.
    #[must_use]
    pub fn options() -> Options {
        Options::default()
    }

    pub(crate) async fn start_with(options: Options) -> Result<Self, Error> {
        let mut tries = 1;
        loop {
            let port = if options.kind == Kind::Node { Port::with_bus() } else { Port::free() };
            let dir = tempfile::Builder::new().prefix("poolwright-redis-").tempdir();
            let dir = dir.map_err(Error::io("make a directory for a server"))?;
            let server = Self { process: Mutex::default(), dir, port: port?, options: options.clone() };
            match server.launch().await {
                Err(Error::Ended { log, .. })
                    if log.contains("Address already in use") && tries < PORTS_MAX =>
                {
                    tries += 1;
                }
                outcome => return outcome.map(|()| server),
            }
        }
    }

    /// The port on 127.0.0.1, the same after a restart.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// The socket's file.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.dir.path().join(SOCKET)
    }

    /// `redis://127.0.0.1:port/0`, with the user and password if it has any; `rediss://` where it speaks TLS.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_at(self.port())
    }

    /// The URL of whatever stands before this server at another port.
    pub(crate) fn url_at(&self, port: u16) -> String {
        let scheme = if self.options.tls { "rediss" } else { "redis" };
        format!("{scheme}://{}127.0.0.1:{port}/0", self.options.caller())
    }

    /// `redis+unix:///path`, as the crate `redis` takes it.
    #[must_use]
    pub fn unix_url(&self) -> String {
        let caller = match (&self.options.user, &self.options.password) {
            (Some(user), _) => format!("?user={}&pass={}", user.name, user.password),
            (None, Some(password)) => format!("?pass={password}"),
            (None, None) => String::new(),
        };
        format!("redis+unix://{}{caller}", self.socket().display())
    }

    /// The directory of its files.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The certificate of a server with `tls`, and who signed it.
    #[must_use]
    pub fn tls_files(&self) -> Option<TlsFiles> {
        self.options.tls.then(|| TlsFiles::within(self.dir()))
    }

    /// The process id, until it is killed.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.process().as_ref().map(Process::id)
    }

    /// Whether it was neither killed nor paused.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.process().as_ref().is_some_and(|process| !process.is_paused())
    }

    pub(crate) fn password(&self) -> Option<&str> {
        self.options.password.as_deref()
    }

    /// A connection of the testbed's own client, as the default user, past whatever stands before the port.
    ///
    /// # Errors
    /// `Io` when the server is down.
    pub async fn connect(&self) -> Result<Connection, Error> {
        let mut connection = Connection::unix(&self.socket()).await?;
        if let Some(password) = self.password() {
            connection.command(&["AUTH", password]).await?;
        }
        Ok(connection)
    }

    /// Sends one command on a connection of its own and returns the answer.
    ///
    /// # Errors
    /// `Refused` when the answer is an error, `Io` when the server is down, `Overdue` when it is paused.
    pub async fn command(&self, args: &[impl AsRef<[u8]>]) -> Result<Reply, Error> {
        self.connect().await?.command(args).await
    }

    /// Ends it at once, as a crash of the machine's power would. Nothing happens when it is down already.
    pub fn kill(&self) {
        let process = self.process().take();
        drop(process);
    }

    /// Stops the process where it stands: connections stay and new ones are taken, answers do not come.
    ///
    /// # Errors
    /// `Down` after `kill`.
    pub fn pause(&self) -> Result<(), Error> {
        self.set_paused(true)
    }

    /// Lets a paused server go on.
    ///
    /// # Errors
    /// `Down` after `kill`.
    pub fn resume(&self) -> Result<(), Error> {
        self.set_paused(false)
    }

    fn set_paused(&self, paused: bool) -> Result<(), Error> {
        let what = if paused { "pause" } else { "resume" };
        let mut process = self.process();
        let process = process.as_mut().ok_or_else(|| Error::Down { server: self.to_string(), what })?;
        process.set_paused(paused).map_err(Error::io(format!("{what} {self}")))
    }

    /// Kills it if it runs, starts it again on the same port and socket, and waits until it answers.
    ///
    /// # Errors
    /// As [`Options::start`].
    pub async fn restart(&self, data: Data) -> Result<(), Error> {
        if data == Data::Kept && self.pid().is_some() && !self.options.append_only {
            self.resume()?;
            self.command(&["SAVE"]).await?;
        }
        self.kill();
        if data == Data::Lost {
            self.forget().map_err(Error::io(format!("remove the data of {self}")))?;
        }
        self.launch().await
    }

    /// Removes what it has written of its data; a cluster's and a sentinel's knowledge of the others stays.
    fn forget(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.dir.path())? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else if name.ends_with(".rdb") || name.ends_with(".aof") {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Waits until a replica has its primary's data and follows it.
    ///
    /// # Errors
    /// `Overdue` when it does not come to that.
    pub async fn until_replicated(&self) -> Result<(), Error> {
        wait::until(format!("{self} to follow its primary"), async || {
            let info = self.command(&["INFO", "replication"]).await.map_err(|error| error.to_string())?;
            let link = info.line("master_link_status").unwrap_or("it is no replica");
            if link == "up" { Ok(()) } else { Err(format!("{link}; its log:\n{}", self.log_tail())) }
        })
        .await
    }

    /// The last lines that it has logged.
    #[must_use]
    pub fn log_tail(&self) -> String {
        let log = fs::read(self.dir.path().join(LOG)).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }

    async fn launch(&self) -> Result<(), Error> {
        let dir = self.dir.path();
        // Sentinels and `CONFIG REWRITE` write what they know into the file, so it is written once.
        let config = dir.join(CONFIG);
        if !config.exists() {
            let text = self.options.file(self.port(), dir, &self.socket());
            fs::write(&config, text).map_err(Error::io("write a configuration"))?;
            if self.options.tls {
                TlsFiles::make(dir)?;
            }
        }
        let log = self.open_log().map_err(Error::io("open a log"))?;
        let sentinel = (self.options.kind == Kind::Sentinel).then_some("--sentinel");
        let args: Vec<&str> = [CONFIG].into_iter().chain(sentinel).collect();
        let process = Process::start(&args, dir, log)?;
        *self.process() = Some(process);
        self.until_ready().await
    }

    fn open_log(&self) -> io::Result<File> {
        OpenOptions::new().create(true).append(true).open(self.dir.path().join(LOG))
    }

    /// Waits until it answers; a server that ended meanwhile is the error inside.
    async fn until_ready(&self) -> Result<(), Error> {
        let ready = wait::until(format!("{self} to answer"), async || {
            if let Some(status) = self.process().as_mut().and_then(Process::ended) {
                return Ok(Err(status));
            }
            match self.command(&["PING"]).await {
                Ok(_) => Ok(Ok(())),
                Err(error) => Err(format!("{error}; its log:\n{}", self.log_tail())),
            }
        });
        ready.await?.map_err(|status| {
            self.kill();
            Error::Ended { server: self.to_string(), status: status.to_string(), log: self.log_tail() }
        })
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        // A panic elsewhere leaves the process as it is, to be ended all the same.
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("the log of {self} ended with:\n{}", self.log_tail());
        }
    }
}

impl fmt::Display for RedisServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.options.kind {
            Kind::Server => "redis-server",
            Kind::Node => "cluster node",
            Kind::Sentinel => "sentinel",
        };
        write!(f, "{kind} on port {}", self.port())
    }
}
