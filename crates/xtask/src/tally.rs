//! Counts tests from the closing lines of the test runner.

use std::fmt;

/// What all test programs of a run said together.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) ignored: u64,
    /// Test programs that came to their closing line.
    pub(crate) programs: u64,
}

impl Tally {
    /// Adds what a line says, if it is a closing line: `test result: ok. 3 passed; 0 failed; 0 ignored; …`.
    pub(crate) fn add(&mut self, line: &str) {
        let Some((_, counts)) = line.split_once("test result: ") else { return };
        self.programs += 1;
        let words: Vec<&str> = counts.split_whitespace().collect();
        for pair in words.windows(2) {
            let Ok(count) = pair[0].parse::<u64>() else { continue };
            match pair[1].trim_end_matches(';') {
                "passed" => self.passed += count,
                "failed" => self.failed += count,
                "ignored" => self.ignored += count,
                _ => {}
            }
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, failed, ignored, programs } = self;
        write!(f, "{passed} passed, {failed} failed, {ignored} ignored in {programs} test programs")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_add_up_and_other_lines_do_not_count() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test a ... ok",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.01s",
            "test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 9.00s",
            "test result: \u{1b}[32mok\u{1b}[0m. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
            "7 passed",
        ] {
            tally.add(line);
        }
        assert_eq!(tally, Tally { passed: 8, failed: 2, ignored: 1, programs: 3 });
        assert_eq!(tally.to_string(), "8 passed, 2 failed, 1 ignored in 3 test programs");
    }
}
