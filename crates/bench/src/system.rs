//! Who is measured.

use std::fmt;

use anyhow::Result;
use clap::ValueEnum;
use tokio::process::Command;

use crate::child::Child;
use crate::peers;
use crate::server::Server;

/// A system that can play the parts of the scenarios.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum)]
pub(crate) enum System {
    /// Poolwright: its client, and its worker with all layers, as a program that uses it has them.
    Ours,
    /// The real asynq, in Go.
    Asynq,
    /// Scripts that do the least that the layout asks for: what this Redis can do.
    Bare,
}

impl System {
    /// Starts the process that plays this part against this server, and waits until it is ready.
    pub(crate) async fn start(self, part: &str, server: &Server, args: &[(&str, String)]) -> Result<Child> {
        let mut command = match self {
            Self::Ours | Self::Bare => Command::new(std::env::current_exe()?),
            Self::Asynq => Command::new(peers::asynq()?),
        };
        match self {
            Self::Ours => command.args([crate::part::WORD, part]),
            Self::Bare => command.args([crate::part::WORD, &format!("bare-{part}")]),
            Self::Asynq => command.arg(part),
        };
        command.args(["--redis", server.url()]);
        for (name, value) in args {
            command.arg(format!("--{name}={value}"));
        }
        Child::start(command, format!("{part} of {self}")).await
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ours => "poolwright",
            Self::Asynq => "asynq",
            Self::Bare => "bare scripts",
        })
    }
}
