//! What is said on a new stream before it carries commands: who one is, which database, and what the server is.
//!
//! Invariant: the stream is handed on with nothing left to read. It is not left to the client library, which loses what a
//! server says before it is asked (no free connection, protected mode).

use std::io;

use redis::{Cmd, ServerError, Value, parse_redis_value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::fault::CallError;
use super::stream::Stream;
use crate::options::Login;

/// No greeting is longer.
const BYTES_MAX: usize = 1 << 20;

/// Part in the replication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Primary,
    Replica,
    /// The server does not tell this user.
    Unknown,
}

/// What is asked of a new stream.
pub(super) struct Greeting<'a> {
    /// The server, for messages.
    pub(super) server: &'a str,
    pub(super) login: &'a Login,
    pub(super) db: u32,
}

impl Greeting<'_> {
    /// Logs in and chooses the database.
    pub(super) async fn say(&self, stream: &mut Stream) -> Result<(), CallError> {
        self.must(stream, &self.first()).await?;
        if self.db != 0 {
            self.must(stream, redis::cmd("SELECT").arg(self.db)).await?;
        }
        // It is only for people who look at CLIENT LIST; a user may not be allowed to.
        self.ask(stream, redis::cmd("CLIENT").arg("SETNAME").arg("poolwright")).await?.ok();
        Ok(())
    }

    /// Asks for the part in the replication.
    pub(super) async fn role(&self, stream: &mut Stream) -> Result<Role, CallError> {
        let info = match self.ask(stream, redis::cmd("INFO").arg("replication")).await? {
            Ok(info) => info,
            Err(error) if error.code() == "LOADING" => return Err(CallError::said(self.server, &error)),
            Err(_) => return Ok(Role::Unknown),
        };
        let role = info.lines().find_map(|line| line.strip_prefix("role:"));
        Ok(match role.map(str::trim) {
            Some("master" | "primary") => Role::Primary,
            Some("slave" | "replica") => Role::Replica,
            _ => Role::Unknown,
        })
    }

    fn first(&self) -> Cmd {
        if !self.login.is_some() {
            return redis::cmd("PING");
        }
        let mut auth = redis::cmd("AUTH");
        if let Some(user) = &self.login.user {
            auth.arg(user);
        }
        auth.arg(self.login.password.as_ref().map_or("", |password| password.reveal()));
        auth
    }

    async fn must(&self, stream: &mut Stream, cmd: &Cmd) -> Result<String, CallError> {
        self.ask(stream, cmd)
            .await?
            .map_err(|error| CallError::said(self.server, &error).before("cannot log in"))
    }

    /// Sends one command and reads its answer. The outer error is the end of the stream.
    async fn ask(&self, stream: &mut Stream, cmd: &Cmd) -> Result<Result<String, ServerError>, CallError> {
        // A server that says no before it is asked may have closed its side already: then there is still its answer to read.
        let written = stream.write_all(&cmd.get_packed_command()).await;
        let written = if written.is_ok() { stream.flush().await } else { written };
        match read(stream).await {
            Ok(answer) => Ok(answer),
            Err(error) if error.kind() == io::ErrorKind::InvalidData && error.get_ref().is_none() => {
                Err(CallError::foreign(self.server))
            }
            Err(error) => Err(CallError::no_greeting(self.server, &written.err().unwrap_or(error))),
        }
    }
}

/// Reads one answer: a line, an error or a text of a stated length. Anything else is `InvalidData` without a cause.
async fn read(stream: &mut Stream) -> io::Result<Result<String, ServerError>> {
    let foreign = || io::Error::from(io::ErrorKind::InvalidData);
    let line = read_line(stream).await?;
    let rest = line.get(1..line.len() - 2).ok_or_else(foreign)?;
    match line[0] {
        b'+' => Ok(Ok(String::from_utf8_lossy(rest).into_owned())),
        b'-' => match parse_redis_value(&line) {
            Ok(Value::ServerError(error)) => Ok(Err(error)),
            _ => Err(foreign()),
        },
        b'$' => {
            let len = std::str::from_utf8(rest).ok().and_then(|digits| digits.parse::<usize>().ok());
            let len = len.filter(|len| *len <= BYTES_MAX).ok_or_else(foreign)?;
            let mut text = vec![0; len + 2];
            stream.read_exact(&mut text).await?;
            text.truncate(len);
            Ok(Ok(String::from_utf8_lossy(&text).into_owned()))
        }
        _ => Err(foreign()),
    }
}

/// Reads to the end of the line, byte by byte: what comes after it belongs to somebody else.
async fn read_line(stream: &mut Stream) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.push(stream.read_u8().await?);
        if line.len() > 4_096 || !b"+-$".contains(&line[0]) {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::super::socket::Led;
    use super::*;
    use poolwright_broker::Error as BrokerError;

    async fn greet(answers: &'static [u8]) -> (Result<Role, CallError>, String) {
        let (ours, mut theirs) = tokio::io::duplex(1 << 16);
        let server = tokio::spawn(async move {
            theirs.write_all(answers).await.unwrap();
            theirs.shutdown().await.unwrap();
            let mut asked = String::new();
            theirs.read_to_string(&mut asked).await.unwrap();
            asked
        });
        let mut stream = Stream::new(ours, Led::default());
        let login = Login { user: Some("u".into()), password: Some("p".into()) };
        let greeting = Greeting { server: "redis at h:1", login: &login, db: 3 };
        let role = match greeting.say(&mut stream).await {
            Ok(()) => greeting.role(&mut stream).await,
            Err(error) => Err(error),
        };
        drop(stream);
        (role, server.await.unwrap())
    }

    #[tokio::test]
    async fn a_greeting_logs_in_chooses_and_asks() {
        let (role, asked) = greet(b"+OK\r\n+OK\r\n+OK\r\n$28\r\n# Replication\r\nrole:slave\r\n").await;
        assert!(
            role.unwrap_err().why().contains("closed the connection"),
            "the text is shorter than announced"
        );
        assert!(
            asked.contains("AUTH\r\n$1\r\nu\r\n$1\r\np\r\n") && asked.contains("SELECT\r\n$1\r\n3\r\n"),
            "{asked}"
        );
        let (role, _) =
            greet(b"+OK\r\n+OK\r\n-NOPERM no\r\n$28\r\n# Replication\r\nrole:master\r\n\r\n").await;
        assert_eq!(role, Ok(Role::Primary));
        let (role, _) = greet(b"+OK\r\n+OK\r\n+OK\r\n$10\r\nrole:slave\r\n").await;
        assert_eq!(role, Ok(Role::Replica));
        let (role, _) = greet(b"+OK\r\n+OK\r\n+OK\r\n-NOPERM no\r\n").await;
        assert_eq!(role, Ok(Role::Unknown));
    }

    #[tokio::test]
    async fn a_no_before_the_question_is_heard() {
        let (role, _) = greet(b"-ERR max number of clients reached\r\n").await;
        let error = role.unwrap_err();
        assert!(error.broker().is_retryable() && error.why().contains("maxclients"), "{error}");
        let (role, _) = greet(b"-WRONGPASS invalid username-password pair\r\n").await;
        let error = role.unwrap_err();
        assert_eq!(error.why(), "cannot log in: redis at h:1 refuses the user or the password: correct them");
        assert!(matches!(error.broker(), BrokerError::Refused { .. }) && error.certainly_not_executed());
    }

    #[tokio::test]
    async fn another_program_is_told_from_a_closed_door() {
        let (role, _) = greet(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        assert!(role.unwrap_err().why().contains("does not speak the protocol of Redis"));
        let (role, _) = greet(b"").await;
        let error = role.unwrap_err();
        assert!(error.broker().is_retryable() && error.why().contains("does it want TLS"), "{error}");
    }
}
