//! Options while they are gathered: everything may still be open.
//!
//! Invariant: only [`Draft::finish`] makes options out of a draft, and it adds no problem without a cure.

use std::time::Duration;

use super::{Endpoint, Login, RedisOptions, Secret, Tls};

/// No time limit is longer: beyond it, the clock's own range would be a limit, too.
pub(super) const TIME_MAX: Duration = Duration::from_secs(86_400);

/// Nobody looks for an answer for longer without a sleep.
pub(super) const SPIN_MAX: Duration = Duration::from_millis(10);

/// What one source said.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) endpoint: Option<Endpoint>,
    pub(super) db: Option<u32>,
    pub(super) user: Option<String>,
    pub(super) password: Option<Secret>,
    pub(super) tls: bool,
    pub(super) tls_files: Tls,
    pub(super) tls_insecure: Option<bool>,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) op_timeout: Option<Duration>,
    pub(super) read_timeout: Option<Duration>,
    pub(super) write_timeout: Option<Duration>,
    pub(super) silence_max: Option<Duration>,
    pub(super) spin_max: Option<Duration>,
    pub(super) backoff_min: Option<Duration>,
    pub(super) backoff_max: Option<Duration>,
    pub(super) enqueue_replicas: Option<u32>,
}

impl Draft {
    /// This one, its gaps filled from another.
    pub(super) fn or(self, other: Self) -> Self {
        // A password belongs to the user it was written beside.
        let user = if self.password.is_some() { self.user } else { self.user.or(other.user) };
        let (ours, theirs) = (self.tls_files, other.tls_files);
        Self {
            endpoint: self.endpoint.or(other.endpoint),
            db: self.db.or(other.db),
            user,
            password: self.password.or(other.password),
            tls: self.tls || other.tls,
            tls_files: Tls {
                ca_file: ours.ca_file.or(theirs.ca_file),
                cert_file: ours.cert_file.or(theirs.cert_file),
                key_file: ours.key_file.or(theirs.key_file),
                server_name: ours.server_name.or(theirs.server_name),
                insecure: false,
            },
            tls_insecure: self.tls_insecure.or(other.tls_insecure),
            connect_timeout: self.connect_timeout.or(other.connect_timeout),
            op_timeout: self.op_timeout.or(other.op_timeout),
            read_timeout: self.read_timeout.or(other.read_timeout),
            write_timeout: self.write_timeout.or(other.write_timeout),
            silence_max: self.silence_max.or(other.silence_max),
            spin_max: self.spin_max.or(other.spin_max),
            backoff_min: self.backoff_min.or(other.backoff_min),
            backoff_max: self.backoff_max.or(other.backoff_max),
            enqueue_replicas: self.enqueue_replicas.or(other.enqueue_replicas),
        }
    }

    /// The options, or nothing when not even the servers are known; that has been said then.
    pub(super) fn finish(self, problems: &mut Vec<String>) -> Option<RedisOptions> {
        let insecure = self.tls_insecure.unwrap_or(false);
        let tls = Tls { insecure, ..self.tls_files };
        if !self.tls && tls != Tls::default() {
            let cure = "turn it on by rediss:// or REDIS_USE_TLS=true, or take these settings away";
            problems.push(format!("there are settings for TLS, but TLS is off; {cure}"));
        }
        let mut options = RedisOptions::new(self.endpoint?);
        options.db = self.db.unwrap_or(0);
        options.login = Login { user: self.user, password: self.password };
        options.tls = self.tls.then_some(tls);
        let (read, write) = (options.read_timeout, options.write_timeout);
        options.read_timeout = self.read_timeout.or(self.op_timeout).unwrap_or(read);
        options.write_timeout =
            self.write_timeout.or(self.op_timeout.map(|op| op.saturating_mul(2))).unwrap_or(write);
        options.connect_timeout = self.connect_timeout.unwrap_or(options.connect_timeout);
        options.silence_max = self.silence_max.unwrap_or(options.silence_max);
        options.spin_max = self.spin_max.unwrap_or(options.spin_max);
        options.backoff_min = self.backoff_min.unwrap_or(options.backoff_min);
        options.backoff_max = self.backoff_max.unwrap_or(options.backoff_max);
        options.enqueue_replicas = self.enqueue_replicas.unwrap_or(0);
        problems.extend(contradictions(&options));
        Some(options)
    }
}

/// What each option allows by itself, but not together.
pub(super) fn contradictions(options: &RedisOptions) -> Vec<String> {
    let mut problems = Vec::new();
    match &options.endpoint {
        Endpoint::Cluster { .. } if options.db != 0 => {
            problems.push(format!("a cluster has only database 0, this is {}", options.db));
        }
        Endpoint::Cluster { seeds: none } | Endpoint::Sentinel { sentinels: none, .. } if none.is_empty() => {
            problems.push("no server is named".to_owned());
        }
        _ => {}
    }
    if let Some(tls) = &options.tls {
        if tls.cert_file.is_some() != tls.key_file.is_some() {
            problems
                .push("a client's certificate and its key go together, one of them is missing".to_owned());
        }
        if tls.insecure && tls.ca_file.is_some() {
            problems.push(
                "a file of authorities and taking any certificate contradict each other: choose one"
                    .to_owned(),
            );
        }
        if matches!(options.endpoint, Endpoint::Single(super::Address::Unix(_))) {
            problems.push("there is no TLS on a unix socket: turn it off".to_owned());
        }
    }
    let times = [
        ("the time limit to connect", options.connect_timeout),
        ("the time limit of reads", options.read_timeout),
        ("the time limit of writes", options.write_timeout),
        ("the limit of silence", options.silence_max),
        ("the first wait before a new attempt", options.backoff_min),
        ("the longest wait before a new attempt", options.backoff_max),
    ];
    for (name, time) in times {
        if time.is_zero() || time > TIME_MAX {
            problems.push(format!("{name} is {time:?}, it must be from 1 ms to a day"));
        }
    }
    if options.spin_max > SPIN_MAX {
        problems.push(format!(
            "calls look for their answers for {:?} before they sleep, at most {SPIN_MAX:?} is allowed",
            options.spin_max
        ));
    }
    if options.backoff_max < options.backoff_min {
        problems.push(format!(
            "the longest wait before a new attempt is {:?}, less than the first, {:?}",
            options.backoff_max, options.backoff_min
        ));
    }
    problems
}
