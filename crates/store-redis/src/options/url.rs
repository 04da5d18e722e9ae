//! Reads a URL into a draft.
//!
//! Invariant: what stands where a password may stand is never repeated in a problem, even when the URL is malformed.

use std::path::PathBuf;
use std::time::Duration;

use super::draft::Draft;
use super::{Address, Endpoint, Login, PORT, SENTINEL_PORT};

/// [`TIME_MAX`](super::draft::TIME_MAX).
pub(super) const MS_MAX: u64 = 86_400_000;

/// [`SPIN_MAX`](super::draft::SPIN_MAX).
const SPIN_US_MAX: u64 = 10_000;

/// The most replicas that an enqueue may wait for.
const REPLICAS_MAX: u64 = 100;

const SCHEMES: &str = "redis://, rediss://, redis+unix://, redis-socket://, redis-sentinel://, rediss-sentinel://, \
                       redis-cluster://, rediss-cluster://";

const PARAMETERS: &str = "db, op_timeout_ms, read_timeout_ms, write_timeout_ms, connect_timeout_ms, silence_max_ms, \
                          spin_max_us, backoff_min_ms, backoff_max_ms, enqueue_replicas, tls_ca_file, tls_cert_file, tls_key_file, tls_server_name, \
                          tls_insecure, for sockets user and pass, for sentinels master, node_user and \
                          node_password";

/// The parts of a URL, as they are written.
struct Parts<'u> {
    login: Option<&'u str>,
    hosts: &'u str,
    path: &'u str,
    query: &'u str,
}

/// Reads what the URL says and notes what is wrong with it.
pub(super) fn read(url: &str, problems: &mut Vec<String>) -> Draft {
    let Some((scheme, rest)) = url.split_once("://") else {
        problems.push(format!("this is no URL of Redis, expected one of {SCHEMES}"));
        return Draft::default();
    };
    let kind = match scheme {
        "redis" | "rediss" => Kind::Single,
        "redis+unix" | "redis-socket" => Kind::Socket,
        "redis-sentinel" | "rediss-sentinel" => Kind::Sentinel,
        "redis-cluster" | "rediss-cluster" => Kind::Cluster,
        _ => {
            problems.push(format!("`{scheme}://` is unknown, expected one of {SCHEMES}"));
            return Draft::default();
        }
    };
    let parts = match split(rest) {
        Ok(parts) => parts,
        Err(problem) => {
            problems.push(problem);
            return Draft::default();
        }
    };
    let mut reader = Reader { kind, draft: Draft::default(), master: None, problems };
    reader.draft.tls = scheme.starts_with("rediss");
    reader.login(parts.login);
    reader.place(&parts);
    reader.query(parts.query);
    reader.end()
}

fn split(rest: &str) -> Result<Parts<'_>, String> {
    let authority_end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(authority_end);
    let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
    if path.contains('#') || query.contains('#') || authority_end < rest.len() && tail.starts_with('#') {
        return Err(
            "there is a # in the URL; inside of a user, a password or a path it is written %23".to_owned()
        );
    }
    // An @ so late means that the password has one of these characters and that its rest would be taken for a path.
    if !authority.is_empty() && tail.contains('@') {
        return Err("an @ comes after the first / or ?: inside of users and passwords / is written %2F, ? %3F and @ %40; \
                    in parameters @ is written %40, too"
            .to_owned());
    }
    let (login, hosts) = match authority.rsplit_once('@') {
        Some((login, hosts)) => (Some(login), hosts),
        None => (None, authority),
    };
    Ok(Parts { login, hosts, path, query })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Single,
    Socket,
    Sentinel,
    Cluster,
}

struct Reader<'p> {
    kind: Kind,
    draft: Draft,
    master: Option<String>,
    problems: &'p mut Vec<String>,
}

impl Reader<'_> {
    fn login(&mut self, written: Option<&str>) {
        let Some(written) = written else { return };
        let (user, password) = match written.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (written, None),
        };
        let mut word = |what: &str, text: &str| match decode(text) {
            Ok(word) => Some(word).filter(|word| !word.is_empty()),
            Err(why) => {
                self.problems.push(format!("the {what}: {why}"));
                None
            }
        };
        self.draft.user = word("user", user);
        self.draft.password = password.and_then(|password| word("password", password)).map(Into::into);
    }

    fn place(&mut self, parts: &Parts<'_>) {
        if self.kind == Kind::Socket {
            return self.socket(parts);
        }
        self.draft.endpoint = self.servers(parts.hosts);
        let db = parts.path.trim_start_matches('/');
        if !db.is_empty() {
            self.db("the database after the hosts", db);
        }
    }

    fn socket(&mut self, parts: &Parts<'_>) {
        match decode(parts.path) {
            Ok(path) if parts.hosts.is_empty() && path.starts_with('/') && !path.ends_with('/') => {
                self.draft.endpoint = Some(Endpoint::Single(Address::Unix(PathBuf::from(path))));
            }
            Ok(_) => self.problems.push(
                "a socket is named by its whole path, such as redis+unix:///run/redis/redis.sock with three slashes"
                    .to_owned(),
            ),
            Err(why) => self.problems.push(format!("the path of the socket: {why}")),
        }
    }

    fn servers(&mut self, written: &str) -> Option<Endpoint> {
        let port = if self.kind == Kind::Sentinel { SENTINEL_PORT } else { PORT };
        if self.kind == Kind::Single && written.contains(',') {
            self.problems.push(
                "several servers are a cluster, redis-cluster://, or sentinels, redis-sentinel://".to_owned(),
            );
            return None;
        }
        let before = self.problems.len();
        let mut all = Vec::new();
        for one in written.split(',') {
            match server(one, port) {
                Ok(address) => all.push(address),
                Err(problem) => self.problems.push(problem),
            }
        }
        if self.problems.len() > before {
            return None;
        }
        match self.kind {
            Kind::Cluster => Some(Endpoint::Cluster { seeds: all }),
            Kind::Sentinel => {
                // What stands before the hosts is for the sentinels.
                let login = Login { user: self.draft.user.take(), password: self.draft.password.take() };
                Some(Endpoint::Sentinel { sentinels: all, master: String::new(), login })
            }
            Kind::Single | Kind::Socket => all.pop().map(Endpoint::Single),
        }
    }

    fn query(&mut self, query: &str) {
        let mut seen = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if seen.contains(&name) {
                self.problems.push(format!("{name} is given twice"));
                continue;
            }
            seen.push(name);
            match decode(value) {
                Ok(value) => self.parameter(name, value),
                Err(why) => self.problems.push(format!("{name}: {why}")),
            }
        }
    }

    fn parameter(&mut self, name: &str, value: String) {
        let sentinel = self.kind == Kind::Sentinel;
        match name {
            "db" if self.draft.db.is_some() => {
                self.problems.push("the database is given twice, as path and as parameter".to_owned());
            }
            "db" => self.db("db", &value),
            "op_timeout_ms" => self.draft.op_timeout = self.millis(name, &value),
            "read_timeout_ms" => self.draft.read_timeout = self.millis(name, &value),
            "write_timeout_ms" => self.draft.write_timeout = self.millis(name, &value),
            "connect_timeout_ms" => self.draft.connect_timeout = self.millis(name, &value),
            "silence_max_ms" => self.draft.silence_max = self.millis(name, &value),
            "spin_max_us" => match whole_number(name, &value, 0, SPIN_US_MAX) {
                Ok(micros) => self.draft.spin_max = Some(Duration::from_micros(micros)),
                Err(problem) => self.problems.push(problem),
            },
            "backoff_min_ms" => self.draft.backoff_min = self.millis(name, &value),
            "backoff_max_ms" => self.draft.backoff_max = self.millis(name, &value),
            "enqueue_replicas" => match whole_number(name, &value, 0, REPLICAS_MAX) {
                Ok(count) => self.draft.enqueue_replicas = u32::try_from(count).ok(),
                Err(problem) => self.problems.push(problem),
            },
            "tls_ca_file" => self.draft.tls_files.ca_file = self.filled(name, value).map(Into::into),
            "tls_cert_file" => self.draft.tls_files.cert_file = self.filled(name, value).map(Into::into),
            "tls_key_file" => self.draft.tls_files.key_file = self.filled(name, value).map(Into::into),
            "tls_server_name" => self.draft.tls_files.server_name = self.filled(name, value),
            "tls_insecure" => match truth(name, &value) {
                Ok(insecure) => self.draft.tls_insecure = Some(insecure),
                Err(problem) => self.problems.push(problem),
            },
            // As in URLs of Rust's crate `redis`.
            "user" if self.kind == Kind::Socket => self.draft.user = self.filled(name, value),
            "pass" if self.kind == Kind::Socket => {
                self.draft.password = self.filled(name, value).map(Into::into)
            }
            "master" if sentinel => self.master = self.filled(name, value),
            "node_user" if sentinel => self.draft.user = self.filled(name, value),
            "node_password" if sentinel => {
                self.draft.password = self.filled(name, value).map(Into::into);
            }
            "master" | "node_user" | "node_password" => {
                self.problems.push(format!("{name} is for redis-sentinel:// only"));
            }
            _ => self.problems.push(format!("unknown parameter `{name}`, there are {PARAMETERS}")),
        }
    }

    fn db(&mut self, name: &str, value: &str) {
        match whole_number(name, value, 0, u64::from(u32::MAX)) {
            Ok(db) => self.draft.db = u32::try_from(db).ok(),
            Err(problem) => self.problems.push(problem),
        }
    }

    fn millis(&mut self, name: &str, value: &str) -> Option<Duration> {
        let millis = whole_number(name, value, 1, MS_MAX).map(Duration::from_millis);
        millis.map_err(|problem| self.problems.push(problem)).ok()
    }

    fn filled(&mut self, name: &str, value: String) -> Option<String> {
        if value.is_empty() {
            self.problems.push(format!("{name} is empty"));
        }
        Some(value).filter(|value| !value.is_empty())
    }

    fn end(mut self) -> Draft {
        if let Some(Endpoint::Sentinel { master, .. }) = &mut self.draft.endpoint {
            match self.master {
                Some(name) => *master = name,
                None => self.problems.push(
                    "sentinels are asked for a primary by its name: add ?master=NAME (often mymaster)"
                        .to_owned(),
                ),
            }
        }
        self.draft
    }
}

/// `host`, `host:port`, `[address of version 6]:port`; without a host it is `localhost`.
pub(super) fn server(written: &str, default_port: u16) -> Result<Address, String> {
    let (host, port) = match written.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or("a [ before an address has no ] after it")?;
            (host, port.strip_prefix(':').or_else(|| port.is_empty().then_some("")).ok_or(NO_PORT)?)
        }
        None if written.matches(':').count() > 1 => {
            return Err("an address of IP version 6 stands in brackets, such as [::1]:6379".to_owned());
        }
        None => written.split_once(':').unwrap_or((written, "")),
    };
    let port = match port {
        "" => default_port,
        digits => digits.parse().ok().filter(|port| *port != 0).ok_or(NO_PORT)?,
    };
    let host = decode(host)?;
    if host.chars().any(|c| c.is_whitespace() || c.is_control() || c == '/') {
        return Err("a host has a character that no host has".to_owned());
    }
    Ok(Address::tcp(if host.is_empty() { "localhost".to_owned() } else { host }, port))
}

// The text is not repeated: it is the rest of a password if somebody forgot the @.
const NO_PORT: &str = "after a host comes a colon and a port from 1 to 65535, and nothing else";

/// A number within bounds.
pub(super) fn whole_number(name: &str, value: &str, min: u64, max: u64) -> Result<u64, String> {
    let number = value.parse::<u64>().ok().filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| format!("{name} is a whole number from {min} to {max}, this is `{value}`"))
}

/// Yes or no.
pub(super) fn truth(name: &str, value: &str) -> Result<bool, String> {
    match value {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(format!("{name} is true or false, this is `{value}`")),
    }
}

/// Resolves `%40` and its like.
fn decode(text: &str) -> Result<String, String> {
    const EXPECTED: &str = "after % two hexadecimal digits are expected; a plain % is written %25";
    let mut pieces = text.split('%');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let digits = piece.get(..2).filter(|two| two.bytes().all(|b| b.is_ascii_hexdigit()));
        let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok()).ok_or(EXPECTED)?;
        bytes.push(byte);
        bytes.extend_from_slice(&piece.as_bytes()[2..]);
    }
    if bytes.contains(&0) {
        return Err("it holds a zero byte".to_owned());
    }
    String::from_utf8(bytes).map_err(|_| "decoded it is no UTF-8".to_owned())
}
