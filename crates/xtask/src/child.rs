//! Starts cargo and other programs the way a person would type them, and reads along where the output matters.

use std::env;
use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// One command line.
#[derive(Debug, Clone)]
pub(crate) struct Child {
    program: String,
    args: Vec<String>,
    envs: Vec<(String, String)>,
}

impl Child {
    /// A program found on the path.
    pub(crate) fn new(program: &str, args: &[&str]) -> Self {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        Self { program: program.to_owned(), args, envs: Vec::new() }
    }

    /// The cargo that started this program.
    pub(crate) fn cargo(args: &[&str]) -> Self {
        Self::new("cargo", args)
    }

    /// Sets a variable for this command alone.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.envs.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds arguments at the end.
    pub(crate) fn args<'a>(mut self, args: impl IntoIterator<Item = &'a str>) -> Self {
        self.args.extend(args.into_iter().map(str::to_owned));
        self
    }

    /// Runs it in `dir`; its output goes where ours goes.
    ///
    /// # Errors
    /// When it cannot be started or does not succeed.
    pub(crate) fn run(&self, dir: &Path) -> Result<()> {
        let status = self.command(dir).status().with_context(|| format!("cannot start {}", self.program))?;
        ensure!(status.success(), "{} ended with {status}", self.program);
        Ok(())
    }

    /// Runs it in `dir`; each line of its stdout goes to ours and then to `see`.
    ///
    /// # Errors
    /// When it cannot be started or does not succeed; `see` has then seen every line all the same.
    pub(crate) fn watch(&self, dir: &Path, mut see: impl FnMut(&str)) -> Result<()> {
        let mut child = self
            .command(dir)
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", self.program))?;
        let lines = BufReader::new(child.stdout.take().expect("stdout was asked to be a pipe"));
        // By bytes: a test may print what is no UTF-8.
        for line in lines.split(b'\n') {
            let line = line.with_context(|| format!("cannot read the output of {}", self.program))?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            see(&line);
        }
        let status = child.wait()?;
        ensure!(status.success(), "{} ended with {status}", self.program);
        Ok(())
    }

    /// Whether it can be started and succeeds; its output is thrown away.
    pub(crate) fn succeeds(&self) -> bool {
        let quiet = self
            .command(Path::new("."))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        quiet.is_ok_and(|status| status.success())
    }

    fn command(&self, dir: &Path) -> Command {
        let program = match self.program.as_str() {
            "cargo" => env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()),
            other => other.to_owned(),
        };
        let mut command = Command::new(program);
        command.args(&self.args).envs(self.envs.iter().map(|(name, value)| (name, value))).current_dir(dir);
        // What cargo said to this program about this program is not true for the next one.
        for (name, _) in env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
                command.env_remove(name.as_ref());
            }
        }
        command
    }
}

/// As one would type it into a shell.
impl fmt::Display for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.envs {
            write!(f, "{name}={} ", quoted(value))?;
        }
        write!(f, "{}", self.program)?;
        self.args.iter().try_for_each(|arg| write!(f, " {}", quoted(arg)))
    }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_prints_as_one_types_it() {
        let doc = Child::cargo(&["doc", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings").args(["it's", ""]);
        assert_eq!(doc.to_string(), r"RUSTDOCFLAGS='-D warnings' cargo doc --no-deps 'it'\''s' ''");
    }

    #[cfg(unix)]
    #[test]
    fn every_line_is_seen_though_the_command_fails() {
        let script = r"printf 'one\n\377\nlast without end'; exit 3";
        let mut seen = Vec::new();
        let outcome =
            Child::new("sh", &["-c", script]).watch(Path::new("."), |line| seen.push(line.to_owned()));
        assert_eq!(seen, ["one", "\u{fffd}", "last without end"]);
        assert_eq!(outcome.unwrap_err().to_string(), "sh ended with exit status: 3");
    }

    #[test]
    fn a_program_that_does_not_exist_is_named() {
        let missing = Child::new("no-such-program", &[]);
        assert!(!missing.succeeds());
        assert_eq!(missing.run(Path::new(".")).unwrap_err().to_string(), "cannot start no-such-program");
    }
}
