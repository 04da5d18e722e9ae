//! Ends a server whose test process ended without a word: killed, aborted, or with the server in a static.
//!
//! A shell waits for a word on its stdin. The word `done` means that we ended the server ourselves; the end of the
//! stream without it means that we are gone, and then the shell ends the server and removes its directory.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The signals that end a test run from the keyboard reach the shell as well; it has to outlive them.
const SCRIPT: &str =
    r#"trap '' HUP INT TERM; read -r word; [ "$word" = done ] || { kill -9 "$1"; rm -rf -- "$2"; }"#;

/// One watched server.
#[derive(Debug)]
pub(crate) struct Warden {
    shell: Child,
}

impl Warden {
    /// Watches over the process `pid`, which works in `dir`.
    pub(crate) fn watch(pid: u32, dir: &Path) -> io::Result<Self> {
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT, "poolwright-testbed", &pid.to_string()]).arg(dir);
        let quiet = shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self { shell: quiet.spawn()? })
    }

    /// The server has been told to end; its process must not have been reaped yet, so that its id is still its own.
    pub(crate) fn dismiss(mut self) {
        if let Some(mut stdin) = self.shell.stdin.take() {
            // A shell that is gone already does no harm either.
            let _ = stdin.write_all(b"done\n");
        }
        let _ = self.shell.wait();
    }
}
