//! Runs the long stories of the `acceptance` package and gathers the figures they print.
//!
//! A story is a test `soak_<name>` of the target `soak`, which exists only with the feature of that name. A line that
//! holds `figures: ` is repeated at the end. `POOLWRIGHT_SOAK_MINUTES` tells a story how long it may take.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::child::Child;
use crate::tally::Tally;

/// Minutes for each story, unless told otherwise.
pub(crate) const MINUTES_DEFAULT: u32 = 10;

const FIGURES: &str = "figures: ";

fn command(stories: &[String], minutes: u32) -> Child {
    Child::cargo(&["test", "--package", "acceptance", "--release", "--features", "soak", "--test", "soak"])
        .args(["--", "--nocapture", "--test-threads=1"])
        .args(stories.iter().map(String::as_str))
        .env("POOLWRIGHT_SOAK_MINUTES", &minutes.to_string())
}

/// Runs the stories whose names hold one of `stories`, or all of them, one after the other.
///
/// # Errors
/// When a story fails, or when none has such a name.
pub(crate) fn run(root: &Path, stories: &[String], minutes: u32) -> Result<()> {
    let command = command(stories, minutes);
    println!("==> soak: {command}");
    let mut harvest = Harvest::default();
    let outcome = command.watch(root, |line| harvest.see(line));
    print!("{}", harvest.figures);
    println!("soak: {}", harvest.tally);
    outcome.with_context(|| format!("to repeat it: {command}"))?;
    ensure!(harvest.tally.passed > 0, "no story has a name that holds {}", stories.join(" or "));
    Ok(())
}

/// What the stories said.
#[derive(Default)]
struct Harvest {
    tally: Tally,
    /// One line each.
    figures: String,
}

impl Harvest {
    fn see(&mut self, line: &str) {
        self.tally.add(line);
        // The runner prints the name of a lone test before it and without a line end.
        if let Some(at) = line.find(FIGURES) {
            self.figures.push_str(&line[at..]);
            self.figures.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_names_stories_and_minutes() {
        let stories = ["crash".to_owned(), "weights".to_owned()];
        assert_eq!(
            command(&stories, 3).to_string(),
            "POOLWRIGHT_SOAK_MINUTES=3 cargo test --package acceptance --release --features soak --test soak \
            -- --nocapture --test-threads=1 crash weights"
        );
    }

    #[test]
    fn figures_are_gathered_wherever_they_stand_in_a_line() {
        let mut harvest = Harvest::default();
        for line in [
            "test soak_crash ... figures: kills=10 lost=0",
            "working",
            "figures: rate=12",
            "ok",
            "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 61.00s",
        ] {
            harvest.see(line);
        }
        assert_eq!(harvest.figures, "figures: kills=10 lost=0\nfigures: rate=12\n");
        assert_eq!(harvest.tally.passed, 2);
    }
}
