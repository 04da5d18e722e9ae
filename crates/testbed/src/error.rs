//! Why a server of the testbed did not do what a test asked, in words that name the cure where there is one.

use std::fmt;
use std::io;

/// The variable that names the program to start in place of `redis-server` from the path.
pub(crate) const PROGRAM_VARIABLE: &str = "POOLWRIGHT_REDIS_SERVER";

/// What went wrong. `Debug` prints the same words as `Display`, so that `unwrap` in a test can be read.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A program that the testbed needs is not there.
    #[error(
        "cannot start `{program}`: {source}; tests need it: run `cargo xtask test --setup`, \
         or as root `apt-get install {package}`{}",
        other_cure(program)
    )]
    Missing {
        /// What was looked for.
        program: String,
        /// The package of Debian that holds it.
        package: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A server ended before it answered.
    #[error("{server} ended with {status} before it answered; its log:\n{log}")]
    Ended {
        /// Which one.
        server: String,
        /// How it ended.
        status: String,
        /// The end of its log.
        log: String,
    },
    /// A state did not come in time.
    #[error("waited {patience_secs} s for {what}, found: {last}")]
    Overdue {
        /// What was waited for.
        what: String,
        /// For how long.
        patience_secs: u64,
        /// What the last look found.
        last: String,
    },
    /// The server answered a command with an error.
    #[error("{command}: {message}")]
    Refused {
        /// The command, shortened.
        command: String,
        /// What the server said.
        message: String,
    },
    /// The server could not be reached, or its answer could not be read.
    #[error("{doing}: {source}")]
    Io {
        /// What was tried.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// The server is not running: it was killed and not restarted.
    #[error("{server} is not running, so it cannot {what}")]
    Down {
        /// Which one.
        server: String,
        /// What was asked of it.
        what: &'static str,
    },
}

fn other_cure(program: &str) -> String {
    if program.contains("redis") || program.contains("valkey") {
        format!(", or name another server in {PROGRAM_VARIABLE}")
    } else {
        String::new()
    }
}

impl Error {
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_names_the_cure() {
        let source = io::Error::from(io::ErrorKind::NotFound);
        let error = Error::Missing { program: "redis-server".to_owned(), package: "redis-server", source };
        let words = format!("{error:?}");
        for cure in ["cargo xtask test --setup", "apt-get install redis-server", PROGRAM_VARIABLE] {
            assert!(words.contains(cure), "{words}");
        }
    }
}
