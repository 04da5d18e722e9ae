//! The chores of the workspace behind one command: `cargo xtask`.

mod child;
mod setup;
mod soak;
mod tally;
mod test;
mod tidy;

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;

const HELP: &str = "\
The chores of the workspace.

cargo xtask test [--setup]               format, tidy, lints, docs and every test; --setup first
                                         installs what they need where it may
cargo xtask tidy                         the rules of the house: rows, lengths, docs, clocks, migrations
cargo xtask soak [STORY…] [--minutes N]  the long stories, all or those whose names hold a STORY,
                                         N minutes each (default 10)
cargo xtask help                         this list

Exit status: 0 done, 1 failed, 2 used wrongly.";

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
enum Chore {
    Help,
    Test { setup: bool },
    Tidy,
    Soak { stories: Vec<String>, minutes: u32 },
}

impl Chore {
    /// Reads the arguments; the error says what was expected.
    fn parse(args: &[&str]) -> Result<Self, String> {
        match args {
            [] | ["help" | "--help" | "-h"] => Ok(Self::Help),
            ["test"] => Ok(Self::Test { setup: false }),
            ["test", "--setup"] => Ok(Self::Test { setup: true }),
            ["tidy"] => Ok(Self::Tidy),
            ["soak", rest @ ..] => Self::parse_soak(rest),
            ["test" | "tidy" | "help", .., last] => Err(format!("unexpected argument `{last}`")),
            [first, ..] => Err(format!("expected test, tidy, soak or help, found `{first}`")),
        }
    }

    fn parse_soak(args: &[&str]) -> Result<Self, String> {
        let (mut stories, mut minutes) = (Vec::new(), soak::MINUTES_DEFAULT);
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match *arg {
                "--minutes" => {
                    let value = args.next().copied().unwrap_or_default();
                    let whole = value.parse().ok().filter(|minutes| *minutes > 0);
                    minutes = whole
                        .ok_or_else(|| format!("expected a whole number of minutes, found `{value}`"))?;
                }
                option if option.starts_with('-') => return Err(format!("unexpected argument `{option}`")),
                story => stories.push(story.to_owned()),
            }
        }
        Ok(Self::Soak { stories, minutes })
    }

    fn perform(&self, root: &Path) -> Result<()> {
        match self {
            Self::Help => println!("{HELP}"),
            Self::Test { setup } => test::run(root, *setup)?,
            Self::Tidy => tidy::run(root)?,
            Self::Soak { stories, minutes } => soak::run(root, stories, *minutes)?,
        }
        Ok(())
    }
}

/// The root of the workspace: two directories above this crate. Cargo says at run time where that is, so a checkout
/// may be moved.
fn root() -> PathBuf {
    let here = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    PathBuf::from(here).ancestors().nth(2).expect("this crate lies in crates/xtask").to_owned()
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let chore = match Chore::parse(&args) {
        Ok(chore) => chore,
        Err(message) => {
            eprintln!("error: {message}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match chore.perform(&root()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chore_is_understood() {
        assert_eq!(Chore::parse(&[]), Ok(Chore::Help));
        assert_eq!(Chore::parse(&["--help"]), Ok(Chore::Help));
        assert_eq!(Chore::parse(&["test"]), Ok(Chore::Test { setup: false }));
        assert_eq!(Chore::parse(&["test", "--setup"]), Ok(Chore::Test { setup: true }));
        assert_eq!(Chore::parse(&["tidy"]), Ok(Chore::Tidy));
    }

    #[test]
    fn soak_takes_stories_and_minutes_in_any_order() {
        let soak = |stories: &[&str], minutes| {
            Ok(Chore::Soak { stories: stories.iter().map(|story| (*story).to_owned()).collect(), minutes })
        };
        assert_eq!(Chore::parse(&["soak"]), soak(&[], soak::MINUTES_DEFAULT));
        assert_eq!(Chore::parse(&["soak", "a", "--minutes", "3", "b"]), soak(&["a", "b"], 3));
    }

    #[test]
    fn wrong_use_is_refused_with_what_was_expected() {
        for (args, word) in [
            (&["tset"][..], "tset"),
            (&["test", "--fast"], "--fast"),
            (&["tidy", "crates"], "crates"),
            (&["help", "x"], "x"),
            (&["soak", "--minute", "1"], "--minute"),
            (&["soak", "--minutes"], "minutes"),
            (&["soak", "--minutes", "0"], "`0`"),
            (&["soak", "--minutes", "1.5"], "`1.5`"),
        ] {
            let message = Chore::parse(args).unwrap_err();
            assert!(message.contains(word), "{args:?}: {message}");
        }
    }

    #[test]
    fn the_root_holds_this_crate() {
        assert!(root().join("crates/xtask/Cargo.toml").exists());
    }
}
