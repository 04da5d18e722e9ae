//! Columns that are a list of numbers: what an attempt may use, and what attempts have used.

use std::time::Duration;

use poolwright_core::Timestamp;

use super::{duration, micros};

/// What an attempt may use, as the column `limits` keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) max_retry: u32,
    pub(crate) timeout: Duration,
    pub(crate) retention: Duration,
    pub(crate) deadline: Option<Timestamp>,
}

impl Limits {
    /// The column.
    pub(crate) fn to_column(self) -> String {
        let (timeout, retention) = (micros(self.timeout), micros(self.retention));
        match self.deadline {
            Some(deadline) => format!("[{},{timeout},{retention},{}]", self.max_retry, deadline.as_micros()),
            None => format!("[{},{timeout},{retention},null]", self.max_retry),
        }
    }

    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut numbers = Numbers::of("limits", text)?;
        Ok(Self {
            max_retry: numbers.count()?,
            timeout: duration(numbers.number()?),
            retention: duration(numbers.number()?),
            deadline: numbers.optional()?.map(Timestamp::from_micros),
        })
    }
}

/// What attempts have used, as the column `charges` keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Charges {
    pub(crate) retried: u32,
    pub(crate) deferrals: u32,
    pub(crate) crashes: u32,
}

impl Charges {
    /// The column; none when nothing was used.
    pub(crate) fn to_column(self) -> Option<String> {
        let Self { retried, deferrals, crashes } = self;
        (self != Self::default()).then(|| format!("[{retried},{deferrals},{crashes}]"))
    }

    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut numbers = Numbers::of("charges", text)?;
        Ok(Self { retried: numbers.count()?, deferrals: numbers.count()?, crashes: numbers.count()? })
    }
}

/// A JSON list of numbers, read from left to right. All tasks pass through here, and a parser for any JSON costs as much as
/// the rest of the row.
struct Numbers<'t> {
    name: &'static str,
    parts: std::str::Split<'t, char>,
}

impl<'t> Numbers<'t> {
    fn of(name: &'static str, text: &'t str) -> Result<Self, String> {
        let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        let inner = inner.ok_or_else(|| format!("{name}: expected a list of numbers, got {text:?}"))?;
        Ok(Self { name, parts: inner.split(',') })
    }

    fn part(&mut self) -> Result<&'t str, String> {
        Ok(self.parts.next().ok_or_else(|| format!("{}: a number is missing", self.name))?.trim())
    }

    fn parse<T: std::str::FromStr>(&self, part: &str) -> Result<T, String> {
        part.parse().map_err(|_| format!("{}: expected a number, got {part:?}", self.name))
    }

    fn number(&mut self) -> Result<i64, String> {
        let part = self.part()?;
        self.parse(part)
    }

    fn count(&mut self) -> Result<u32, String> {
        let part = self.part()?;
        self.parse(part)
    }

    fn optional(&mut self) -> Result<Option<i64>, String> {
        match self.part()? {
            "null" => Ok(None),
            part => self.parse(part).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_they_were_written() {
        for deadline in [None, Some(Timestamp::from_secs(1_700_000_000)), Some(Timestamp::from_secs(-5))] {
            let limits = Limits {
                max_retry: 25,
                timeout: Duration::from_secs(1_800),
                retention: Duration::MAX,
                deadline,
            };
            let text = limits.to_column();
            assert_eq!(Limits::read(&text), Ok(Limits { retention: duration(i64::MAX), ..limits }), "{text}");
            serde_json::from_str::<serde_json::Value>(&text).expect("people read it with the JSON operators");
        }
    }

    #[test]
    fn charges_are_read_as_they_were_written_and_none_are_no_text() {
        let charges = Charges { retried: 1, deferrals: 0, crashes: u32::MAX };
        assert_eq!(Charges::read(&charges.to_column().unwrap()), Ok(charges));
        assert_eq!(Charges::default().to_column(), None);
    }

    #[test]
    fn what_is_no_list_of_numbers_says_so() {
        for (text, said) in [
            ("", "limits: expected a list of numbers, got \"\""),
            ("[1,2]", "limits: a number is missing"),
            ("[1,2,x,null]", "limits: expected a number, got \"x\""),
            ("[-1,2,3,null]", "limits: expected a number, got \"-1\""),
        ] {
            assert_eq!(Limits::read(text).unwrap_err(), said);
        }
    }
}
