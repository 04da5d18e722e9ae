//! One running `redis-server`: started, signalled and ended by its process id.

use std::env;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::{Error, PROGRAM_VARIABLE};
use crate::warden::Warden;

/// A process that ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    paused: bool,
    warden: Option<Warden>,
}

impl Process {
    /// Starts the server in `dir`; what it says goes to `log`.
    pub(crate) fn start(args: &[&str], dir: &Path, log: File) -> Result<Self, Error> {
        let program = env::var(PROGRAM_VARIABLE).unwrap_or_else(|_| "redis-server".to_owned());
        let mut command = Command::new(&program);
        command.args(args).current_dir(dir).stdin(Stdio::null());
        let errors = log.try_clone().map_err(Error::io("open the log twice"))?;
        let started = command.stdout(log).stderr(errors).spawn();
        let child = started.map_err(|source| Error::Missing { program, package: "redis-server", source })?;
        let mut process = Self { child, paused: false, warden: None };
        let warden = Warden::watch(process.id(), dir).map_err(Error::io("start sh"))?;
        process.warden = Some(warden);
        Ok(process)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused
    }

    /// Stops the process where it stands, or lets it go on; meanwhile its sockets are open and silent.
    pub(crate) fn set_paused(&mut self, paused: bool) -> io::Result<()> {
        self.signal(if paused { Signal::STOP } else { Signal::CONT })?;
        self.paused = paused;
        Ok(())
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        // The child has not been waited for, so the id cannot have become another's.
        Ok(kill_process(Pid::from_child(&self.child), signal)?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Without a chance to say goodbye: nobody needs what it would save.
        let _ = self.child.kill();
        if let Some(warden) = self.warden.take() {
            warden.dismiss();
        }
        let _ = self.child.wait();
    }
}
