//! Other systems' programs, built when they are wanted.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context as _, Result, anyhow, bail};

/// The program of `peers/asynq`, built once a run beside our own program.
pub(crate) fn asynq() -> Result<&'static Path> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = PROGRAM.get_or_init(|| build().map_err(|error| format!("{error:#}")));
    built.as_deref().map_err(|why| anyhow!("{why}"))
}

fn build() -> Result<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/asynq");
    let own = std::env::current_exe()?;
    let program = own.parent().context("a program lies in a directory")?.join("poolwright-bench-asynq");
    let mut go = Command::new("go");
    go.args(["build", "-trimpath", "-o"]).arg(&program).arg(".").current_dir(&source);
    match go.output() {
        Ok(built) if built.status.success() => Ok(program),
        Ok(built) => {
            bail!("{} does not build:\n{}", source.display(), String::from_utf8_lossy(&built.stderr))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            bail!("asynq is a Go program, and there is no `go` here: install Go 1.24 or later")
        }
        Err(error) => Err(error).context("cannot run go"),
    }
}
