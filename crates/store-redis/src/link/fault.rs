//! What an answer of Redis, or the lack of one, means to a caller of the broker.
//!
//! Invariant: `certainly_not_executed` is only true when the server cannot have done any part of the command.

mod answer;

use std::fmt;
use std::io;
use std::time::Duration;

use poolwright_broker::Error as BrokerError;
use redis::{ErrorKind, RedisError, ServerError};

use super::tls::is_lasting;
use answer::Answer;

/// Why a call has no answer, or an answer that is an error.
#[derive(Clone, PartialEq, Eq)]
pub struct CallError {
    error: BrokerError,
    unexecuted: bool,
    code: Option<Box<str>>,
    redirect: Option<Redirect>,
}

/// Where a node of a cluster sends its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirect {
    /// The slot lives there now. Otherwise only this one command is to go there, after an `ASKING`.
    pub(crate) moved: bool,
    /// As the node wrote it: `host:port`, the host may be empty.
    pub(crate) place: String,
}

impl CallError {
    /// What to tell the caller of the broker.
    #[must_use]
    pub const fn broker(&self) -> &BrokerError {
        &self.error
    }

    /// The server has not done any part of it: it was never sent, or was refused as a whole. What lacks this may have been
    /// done, or may still be done later.
    #[must_use]
    pub const fn certainly_not_executed(&self) -> bool {
        self.unexecuted
    }

    /// The first word of the server's error, such as `OOM`, also when a script failed by it. None when there was no answer.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }

    /// The server does not hold the script of an `EVALSHA`.
    #[must_use]
    pub fn is_noscript(&self) -> bool {
        self.code() == Some("NOSCRIPT")
    }

    pub(crate) const fn redirect(&self) -> Option<&Redirect> {
        self.redirect.as_ref()
    }

    /// The server is not what it was taken for: it has to be asked again who holds the data.
    pub(crate) fn means_other_role(&self) -> bool {
        matches!(self.code(), Some("READONLY" | "MASTERDOWN" | "UNBLOCKED"))
    }

    /// The server answered with an error.
    pub(crate) fn said(server: &str, error: &ServerError) -> Self {
        let answer = Answer::new(error.code(), error.details().unwrap_or_default());
        let (retryable, why) = answer.meaning();
        let why = format!("{server} {why}");
        Self {
            error: if retryable { BrokerError::Unavailable { why } } else { BrokerError::Refused { why } },
            unexecuted: answer.is_refused_as_a_whole(),
            code: Some(answer.code.into()),
            redirect: answer.redirect(),
        }
    }

    /// What answers is another program. Nothing was executed: it is noticed before the first command.
    pub(crate) fn foreign(server: &str) -> Self {
        Self::refused(format!(
            "{server} does not speak the protocol of Redis: is it another program, or does it want TLS?"
        ))
    }

    /// The stream could not be opened.
    pub(crate) fn not_connected(server: &str, error: &io::Error) -> Self {
        if is_lasting(error) {
            return Self::refused(format!("{server} and this program do not agree on TLS: {error}"));
        }
        Self::unreachable(format!("{server} cannot be reached: {error}"))
    }

    /// The stream ended before anything but a greeting was sent on it.
    pub(crate) fn no_greeting(server: &str, error: &io::Error) -> Self {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        if matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof) {
            let why = format!("{server} closed the connection at once: is it starting, or does it want TLS?");
            return Self::unreachable(why);
        }
        Self::not_connected(server, error)
    }

    /// The connection broke, or brought something that is no answer.
    pub(crate) fn broken(server: &str, error: &RedisError) -> Self {
        let error = match error.kind() {
            // Who answers was asked in the greeting: an answer that was cut off reads so, too.
            ErrorKind::Parse => BrokerError::Unavailable {
                why: format!("the connection to {server} broke in the middle of an answer: {error}"),
            },
            ErrorKind::Client | ErrorKind::InvalidClientConfig => {
                BrokerError::Refused { why: format!("a command for {server} cannot be sent: {error}") }
            }
            _ => BrokerError::Unavailable { why: format!("the connection to {server} broke: {error}") },
        };
        Self { error, unexecuted: false, code: None, redirect: None }
    }

    /// Whatever the client library says.
    pub(crate) fn of_redis(server: &str, error: RedisError) -> Self {
        match ServerError::try_from(error) {
            Ok(error) => Self::said(server, &error),
            Err(error) => Self::broken(server, &error),
        }
    }

    /// The answer did not come in time.
    pub(crate) fn late(server: &str, limit: Duration) -> Self {
        Self::unavailable(format!("{server} did not answer within {} ms", limit.as_millis()), false)
    }

    /// Nothing was sent: there is no connection.
    pub(crate) fn unreachable(why: impl Into<String>) -> Self {
        Self::unavailable(why.into(), true)
    }

    /// Nothing was sent: everybody who was asked failed. It is hopeless only if it is with each of them.
    pub(crate) fn all(what: &str, failed: &[Self]) -> Self {
        let why = failed.iter().map(Self::why).collect::<Vec<_>>().join("; ");
        let why = format!("{what}: {why}");
        let hopeless = !failed.is_empty() && failed.iter().all(|error| !error.error.is_retryable());
        if hopeless { Self::refused(why) } else { Self::unreachable(why) }
    }

    /// Nothing was sent: whatever was to send it is gone.
    pub(crate) fn no_runtime() -> Self {
        Self::unreachable("the runtime on which the store was opened has ended")
    }

    /// Nothing was sent: the store was closed.
    pub(crate) fn closed() -> Self {
        Self::refused("the store is closed")
    }

    /// Nothing was sent: this is not the server that takes writes. Only a new lookup may find that it was a failover.
    pub(crate) fn replica(server: &str) -> Self {
        let why = format!("{server} is a replica: name its primary, or wait if a failover is under way");
        Self { code: Some("READONLY".into()), ..Self::unreachable(why) }
    }

    /// Nothing was sent, and it is of no use to try again.
    pub(crate) fn refused(why: impl Into<String>) -> Self {
        Self { error: BrokerError::Refused { why: why.into() }, unexecuted: true, code: None, redirect: None }
    }

    fn unavailable(why: String, unexecuted: bool) -> Self {
        Self { error: BrokerError::Unavailable { why }, unexecuted, code: None, redirect: None }
    }

    /// The same error with words before it, where a call failed because something before it did; so nothing was executed.
    pub(crate) fn before(self, what: &str) -> Self {
        let error = match self.error {
            BrokerError::Unavailable { why } => BrokerError::Unavailable { why: format!("{what}: {why}") },
            BrokerError::Refused { why } => BrokerError::Refused { why: format!("{what}: {why}") },
            other => other,
        };
        Self { error, unexecuted: true, ..self }
    }

    /// The reason alone.
    pub(crate) fn why(&self) -> String {
        match &self.error {
            BrokerError::Unavailable { why } | BrokerError::Refused { why } => why.clone(),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl fmt::Debug for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = f.debug_struct("CallError");
        all.field("error", &self.error).field("code", &self.code);
        all.field("certainly_not_executed", &self.unexecuted).finish_non_exhaustive()
    }
}

impl std::error::Error for CallError {}

impl From<CallError> for BrokerError {
    fn from(error: CallError) -> Self {
        error.error
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redis::{Value, parse_redis_value};

    fn said(line: &str) -> CallError {
        let Value::ServerError(error) = parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap() else {
            panic!("{line} is no error");
        };
        CallError::said("redis at h:1", &error)
    }

    #[track_caller]
    fn expect(line: &str, retryable: bool, unexecuted: bool, words: &str) {
        let error = said(line);
        assert_eq!(error.broker().is_retryable(), retryable, "{line}: {error}");
        assert!(retryable || matches!(error.broker(), BrokerError::Refused { .. }), "{line}: {error}");
        assert_eq!(error.certainly_not_executed(), unexecuted, "{line}: {error}");
        let message = error.to_string();
        assert!(message.contains("redis at h:1 ") && message.contains(words), "{line}: {message}");
        assert!(!message.contains("  "), "{line}: {message}");
    }

    #[test]
    fn what_passes_is_unavailable_and_says_why() {
        expect("LOADING Redis is loading the dataset in memory", true, true, "loading its data");
        expect(
            "BUSY Redis is busy running a script. You can only call SCRIPT KILL",
            true,
            true,
            "SCRIPT KILL",
        );
        expect(
            "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
            true,
            true,
            "replica",
        );
        expect("CLUSTERDOWN The cluster is down", true, true, "cluster that is down: The cluster is down");
        expect("TRYAGAIN Multiple keys request during rehashing of slot", true, true, "moving the slot");
        expect("OOM command not allowed when used memory > 'maxmemory'.", true, true, "has no room");
        expect("READONLY You can't write against a read only replica.", true, true, "takes no writes");
        expect("NOREPLICAS Not enough good replicas to write.", true, true, "min-replicas-to-write");
        expect(
            "MISCONF Redis is configured to save RDB snapshots, but",
            true,
            true,
            "cannot save to its disk",
        );
        expect("UNBLOCKED force unblock from blocking operation", true, true, "role has changed");
        expect("NOSCRIPT No matching script. Please use EVAL.", true, true, "does not hold the script");
        expect("ERR max number of clients reached", true, true, "maxclients");
        expect(
            "ERR Error running script: Script killed by user with SCRIPT KILL. @user_script: 1",
            true,
            false,
            "killed",
        );
        expect("MOVED 1 h:2", true, true, "sends on");
    }

    #[test]
    fn what_does_not_pass_is_refused_with_the_cure() {
        expect("NOAUTH Authentication required.", false, true, "give a user and password");
        expect("WRONGPASS invalid username-password pair or user is disabled.", false, true, "correct them");
        expect("ERR invalid password", false, false, "correct it");
        expect(
            "ERR AUTH <password> called without any password configured for the default user.",
            false,
            false,
            "take it away",
        );
        expect(
            "NOPERM this user has no permissions to run the 'info' command",
            false,
            true,
            "'info' command): allow it",
        );
        expect("DENIED Redis is running in protected mode because", false, true, "protected mode");
        expect(
            "WRONGTYPE Operation against a key holding the wrong kind of value",
            false,
            true,
            "another type",
        );
        expect("CROSSSLOT Keys in request don't hash to the same slot", false, true, "several slots");
        expect(
            "ERR unknown command `BLMOVE`, with args beginning with: `secret`",
            false,
            true,
            "6.2 or later",
        );
        expect("ERR DB index is out of range", false, false, "`databases`");
        expect("ERR SELECT is not allowed in cluster mode", false, false, "write redis-cluster://");
        expect("ERR This instance has cluster support disabled", false, true, "write redis://");
        expect("ERR value is not an integer", false, false, "unexpected answer: ERR value is not an integer");
        assert!(
            !said("ERR unknown command `X`, with args beginning with: `secret`")
                .to_string()
                .contains("secret")
        );
    }

    #[test]
    fn a_failure_inside_of_a_script_is_seen_through() {
        let old = "ERR Error running script (call to f_1a): @user_script:1: @user_script: 1: -OOM command not allowed";
        expect(old, true, true, "has no room");
        assert_eq!(said(old).code(), Some("OOM"));
        let full = "ERR Error running script (call to f_1a): @user_script:1: @user_script: 1: \
                    -MISCONF Errors writing to the AOF file: No space left on device";
        expect(full, true, true, "cannot save to its disk");
        let acl = "ERR The user executing the script can't run this command or subcommand script: 1a, on @user_script:1.";
        expect(acl, false, false, "ACL SETUSER");
        let new = "OOM command not allowed when used memory > 'maxmemory'. script: 1a, on @user_script:1.";
        expect(new, true, true, "has no room");
        // A script may have written before it met the key.
        let wrong = "WRONGTYPE Operation against a key holding the wrong kind of value script: 1a, on @user_script:1.";
        expect(wrong, false, false, "another type");
        let wrong = "ERR Error running script (call to f_1a): @user_script:1: @user_script: 9: WRONGTYPE Operation against";
        expect(wrong, false, false, "another type");
        expect(
            "ERR user_script:1: attempt to index nil script: 1a, on @user_script:1.",
            false,
            false,
            "unexpected",
        );
    }

    #[test]
    fn a_redirection_names_its_place() {
        let moved = Redirect { moved: true, place: "10.0.0.1:7000".to_owned() };
        assert_eq!(said("MOVED 3999 10.0.0.1:7000").redirect(), Some(&moved));
        assert!(!said("ASK 3999 :7000").redirect().unwrap().moved);
        assert!(said("TRYAGAIN Multiple keys").redirect().is_none());
    }

    #[test]
    fn a_broken_connection_may_have_done_it() {
        let broken = |error: RedisError| CallError::broken("redis at h:1", &error);
        let reset = broken(std::io::Error::from(std::io::ErrorKind::ConnectionReset).into());
        assert!(reset.broker().is_retryable() && !reset.certainly_not_executed());
        assert!(reset.to_string().contains("the connection to redis at h:1 broke"));
        let half = broken(parse_redis_value(b"half an answer\r\n").unwrap_err());
        assert!(half.broker().is_retryable() && !half.certainly_not_executed(), "{half}");
        assert!(half.to_string().contains("in the middle of an answer"));
        let late = CallError::late("redis at h:1", Duration::from_millis(500));
        assert!(late.broker().is_retryable() && !late.certainly_not_executed());
        assert!(late.to_string().contains("within 500 ms"));
    }
}
