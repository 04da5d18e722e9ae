//! What a server is started with: the lines of its configuration, and how it is reached.

use std::fmt::Write as _;
use std::path::Path;

use crate::error::Error;
use crate::server::RedisServer;
use crate::tls::TlsFiles;

/// The wishes of a test; without any, an empty server in memory on a port and on a socket.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub(crate) append_only: bool,
    pub(crate) password: Option<String>,
    pub(crate) user: Option<User>,
    pub(crate) tls: bool,
    lines: Vec<String>,
    pub(crate) kind: Kind,
}

/// Whom an access list lets in, beside the default user.
#[derive(Debug, Clone)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) password: String,
    rules: String,
}

/// What the program is started as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Server,
    /// A node of a cluster, which needs a second port.
    Node,
    Sentinel,
}

impl Options {
    /// Every write is in a file before its answer, so that a killed server comes back with all of them.
    #[must_use]
    pub fn append_only(mut self) -> Self {
        self.append_only = true;
        self
    }

    /// The default user has to give this password.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// A user of the access list, with rules as `ACL SETUSER` takes them (`~asynq:* +@all -@dangerous`). The URLs
    /// name this user; the server's own `command` stays with the default one, who may do everything.
    #[must_use]
    pub fn user(mut self, name: &str, password: &str, rules: &str) -> Self {
        let [name, password, rules] = [name, password, rules].map(str::to_owned);
        self.user = Some(User { name, password, rules });
        self
    }

    /// A limit of memory, such as `2mb`, and what happens at it, such as `noeviction` or `allkeys-lru`.
    #[must_use]
    pub fn max_memory(self, limit: &str, policy: &str) -> Self {
        self.line(&format!("maxmemory {limit}")).line(&format!("maxmemory-policy {policy}"))
    }

    /// The port speaks TLS, and nothing else; [`RedisServer::tls_files`] says whom a client has to trust. The socket
    /// stays plain.
    #[must_use]
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Follows another server, which does not speak TLS. `until_replicated` of the replica awaits the link.
    #[must_use]
    pub fn replica_of(self, primary: &RedisServer) -> Self {
        let options = self.line(&format!("replicaof 127.0.0.1 {}", primary.port()));
        match primary.password() {
            Some(password) => options.line(&format!("masterauth {password}")),
            None => options,
        }
    }

    /// A line of the configuration file, as it stands there. Later lines win.
    #[must_use]
    pub fn line(mut self, line: &str) -> Self {
        self.lines.push(line.to_owned());
        self
    }

    pub(crate) fn kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// Starts a server and waits until it answers.
    ///
    /// # Errors
    /// `Missing` without the program, `Ended` with the log when the server does not accept its configuration.
    pub async fn start(self) -> Result<RedisServer, Error> {
        RedisServer::start_with(self).await
    }

    /// The configuration of a server in `dir`.
    pub(crate) fn file(&self, port: u16, dir: &Path, socket: &Path) -> String {
        let mut file = format!(
            "bind 127.0.0.1\nunixsocket {}\ndir {}\nprotected-mode no\ndaemonize no\n",
            socket.display(),
            dir.display()
        );
        // No snapshots, and no wait for disks: what the system has taken outlives a killed server.
        file.push_str("save \"\"\nappendfsync no\n");
        // A replica's first copy needs neither a file nor a time for others to join.
        file.push_str("repl-diskless-sync yes\nrepl-diskless-sync-delay 0\n");
        let mut add = |line: &str| writeln!(file, "{line}").expect("a string takes every line");
        add(&self.listen(port, dir));
        add(if self.append_only { "appendonly yes" } else { "appendonly no" });
        if let Some(password) = &self.password {
            // Nodes of a cluster give it to each other.
            add(&format!("requirepass {password}\nmasterauth {password}"));
        }
        if let Some(User { name, password, rules }) = &self.user {
            add(&format!("user {name} on >{password} {rules}"));
        }
        if self.kind == Kind::Node {
            add("cluster-enabled yes");
        }
        self.lines.iter().for_each(|line| add(line));
        file
    }

    fn listen(&self, port: u16, dir: &Path) -> String {
        if !self.tls {
            return format!("port {port}");
        }
        let TlsFiles { authority, certificate, key } = TlsFiles::within(dir);
        let [authority, certificate, key] = [&authority, &certificate, &key].map(|path| path.display());
        format!(
            "port 0\ntls-port {port}\ntls-auth-clients no\ntls-ca-cert-file {authority}\n\
             tls-cert-file {certificate}\ntls-key-file {key}"
        )
    }

    /// The part of a URL that names who calls, with its `@`.
    pub(crate) fn caller(&self) -> String {
        match (&self.user, &self.password) {
            (Some(User { name, password, .. }), _) => format!("{name}:{password}@"),
            (None, Some(password)) => format!(":{password}@"),
            (None, None) => String::new(),
        }
    }
}
