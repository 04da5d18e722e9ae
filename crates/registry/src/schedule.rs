//! Schedules: cron texts in the usual meaning, checked by the times they give.
//!
//! Five fields (minute, hour, day of month, month, day of week) or six, with seconds first. Sunday is 0 or 7; names
//! (`mon`, `jan`) are understood; when both day fields are restricted, a day that fits *either* fits. That is what
//! cron and asynq do. The `cron` crate, which finds the times, counts days of the week from 1 and wants both day
//! fields to fit, so a text is read here and handed on as lists of numbers, "either" as two schedules.
//! Also `@hourly` and its kin, and `@every 90s`. All times are UTC.
//!
//! Invariant: a [`Schedule`] gives at least one time.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use poolwright_core::Timestamp;

use crate::duration;
use crate::suggest::quote;

/// When periodic work is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    text: Arc<str>,
    plan: Plan,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Plan {
    /// Due when any of them is.
    Cron(Vec<cron::Schedule>),
    /// Due at every multiple since the epoch, so that all processes agree on the slots.
    Every(Duration),
}

/// Why a text is no schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// Neither five nor six fields.
    #[error("expected five fields, or six with seconds first, found {0}")]
    Fields(usize),
    /// One field is wrong.
    #[error("the {field} field is {found}, expected {expected}")]
    Field {
        /// Which field.
        field: &'static str,
        /// The part that is wrong, quoted.
        found: String,
        /// What may stand there.
        expected: String,
    },
    /// An `@` word that nobody knows.
    #[error(
        "unknown word {0}, expected `@yearly`, `@monthly`, `@weekly`, `@daily`, `@hourly` or `@every 90s`"
    )]
    Word(String),
    /// A wrong interval.
    #[error("`@every` needs a duration of at least one second: {0}")]
    Every(String),
    /// A time zone.
    #[error("time zones are not supported, all times are UTC")]
    Zone,
    /// Well formed, but such a day does not exist.
    #[error("it never comes: no month has such a day")]
    Never,
}

/// How to write a schedule; the cure of every [`ScheduleError`].
pub(crate) const CURE: &str =
    "for example `0 */5 * * * *` (every five minutes, seconds first), `30 2 * * mon-fri` or `@every 90s`";

impl Schedule {
    /// The text it came from.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The first time strictly after `now`; none when there is no more before the year 2101.
    #[must_use]
    pub fn next_after(&self, now: Timestamp) -> Option<Timestamp> {
        match &self.plan {
            Plan::Every(step) => {
                let step = i64::try_from(step.as_micros()).unwrap_or(i64::MAX);
                let slot = now.as_micros().div_euclid(step).saturating_add(1);
                slot.checked_mul(step).map(Timestamp::from_micros)
            }
            Plan::Cron(schedules) => {
                let now: DateTime<Utc> = DateTime::from_timestamp(now.as_secs(), 0)?;
                let next = schedules.iter().filter_map(|schedule| schedule.after(&now).next()).min()?;
                Some(Timestamp::from_secs(next.timestamp()))
            }
        }
    }
}

impl FromStr for Schedule {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        let plan = match text.trim() {
            word if word.starts_with('@') => shorthand(word)?,
            fields if fields.starts_with("TZ=") || fields.starts_with("CRON_TZ=") => {
                return Err(ScheduleError::Zone);
            }
            fields => Plan::Cron(fields_to_schedules(fields)?),
        };
        let schedule = Self { text: text.into(), plan };
        // The year 2000 had a 29 February, so whatever exists at all is found from there.
        match schedule.next_after(Timestamp::from_secs(946_684_799)) {
            Some(_) => Ok(schedule),
            None => Err(ScheduleError::Never),
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn shorthand(word: &str) -> Result<Plan, ScheduleError> {
    if let Some(every) = word.strip_prefix("@every ") {
        let step = duration::parse(every.trim()).map_err(|why| ScheduleError::Every(why.to_string()))?;
        if step < Duration::from_secs(1) {
            return Err(ScheduleError::Every(format!("found {}", quote(every.trim()))));
        }
        return Ok(Plan::Every(step));
    }
    let fields = match word {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => return Err(ScheduleError::Word(quote(word))),
    };
    fields_to_schedules(fields).map(Plan::Cron)
}

/// What one field may hold.
struct Field {
    name: &'static str,
    min: u32,
    max: u32,
    names: &'static [&'static str],
}

const fn field(name: &'static str, min: u32, max: u32, names: &'static [&'static str]) -> Field {
    Field { name, min, max, names }
}

const SECOND: Field = field("second", 0, 59, &[]);
const MINUTE: Field = field("minute", 0, 59, &[]);
const HOUR: Field = field("hour", 0, 23, &[]);
const DAY: Field = field("day of month", 1, 31, &[]);
const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const MONTH: Field = field("month", 1, 12, MONTHS);
const WEEKDAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
/// 7 is Sunday too; it is folded into 0 after ranges such as `5-7` are spread.
const WEEKDAY: Field = field("day of week", 0, 7, WEEKDAYS);

fn fields_to_schedules(text: &str) -> Result<Vec<cron::Schedule>, ScheduleError> {
    let parts: Vec<&str> = text.split_whitespace().collect();
    let (second, rest) = match parts.as_slice() {
        rest if rest.len() == 5 => ("0", rest),
        [second, rest @ ..] if rest.len() == 5 => (*second, rest),
        other => return Err(ScheduleError::Fields(other.len())),
    };
    let second = SECOND.list(second)?;
    let (minute, hour, month) = (MINUTE.list(rest[0])?, HOUR.list(rest[1])?, MONTH.list(rest[3])?);
    let (day, weekday) = (DAY.read(rest[2])?, WEEKDAY.read(rest[4])?);
    let day = day.map(|days| join(days.into_iter()));
    // The crate counts from Sunday = 1.
    let weekday =
        weekday.map(|days| join(days.into_iter().map(|d| d % 7 + 1).collect::<BTreeSet<_>>().into_iter()));
    let days = match (day, weekday) {
        (Some(day), Some(weekday)) => vec![(day, "*".to_owned()), ("*".to_owned(), weekday)],
        (day, weekday) => vec![(day.unwrap_or_else(|| "*".into()), weekday.unwrap_or_else(|| "*".into()))],
    };
    let schedules = days.into_iter().map(|(day, weekday)| {
        format!("{second} {minute} {hour} {day} {month} {weekday}")
            .parse::<cron::Schedule>()
            .expect("lists of numbers within their ranges are what the crate reads")
    });
    Ok(schedules.collect())
}

fn join(numbers: impl Iterator<Item = u32>) -> String {
    numbers.map(|n| n.to_string()).collect::<Vec<_>>().join(",")
}

impl Field {
    /// The field as a list of numbers, `*` when it is not restricted.
    fn list(&self, text: &str) -> Result<String, ScheduleError> {
        Ok(self.read(text)?.map_or_else(|| "*".to_owned(), |numbers| join(numbers.into_iter())))
    }

    /// The numbers that fit; none when the field is `*` or `?`, which restricts nothing.
    fn read(&self, text: &str) -> Result<Option<BTreeSet<u32>>, ScheduleError> {
        if matches!(text, "*" | "?" | "*/1") {
            return Ok(None);
        }
        let mut numbers = BTreeSet::new();
        for part in text.split(',') {
            let (low, high, step) = self.range(part).ok_or_else(|| self.refuse(part))?;
            numbers.extend((low..=high).step_by(step));
        }
        Ok(Some(numbers))
    }

    /// `*`, `n`, `a-b`, each perhaps with `/step`; `n/step` reaches to the end.
    fn range(&self, part: &str) -> Option<(u32, u32, usize)> {
        let (span, step) = match part.split_once('/') {
            None => (part, None),
            Some((span, step)) => (span, Some(step.parse::<usize>().ok().filter(|step| *step > 0)?)),
        };
        let last = if self.names.len() == 7 { 6 } else { self.max };
        let (low, high) = match span.split_once('-') {
            None if matches!(span, "*" | "?") => (self.min, last),
            None => {
                let low = self.number(span)?;
                (low, if step.is_some() { last.max(low) } else { low })
            }
            Some((low, high)) => match (self.number(low)?, self.number(high)?) {
                // `fri-sun`: Sunday at the end of a week is its seventh day.
                (low, 0) if low > 0 && self.max == 7 => (low, 7),
                range => range,
            },
        };
        (low <= high).then_some((low, high, step.unwrap_or(1)))
    }

    fn number(&self, text: &str) -> Option<u32> {
        let named = || {
            let at = self.names.iter().position(|name| name.eq_ignore_ascii_case(text))?;
            u32::try_from(at).ok().map(|at| at + self.min)
        };
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let number = if digits { text.parse::<u32>().ok() } else { named() };
        number.filter(|n| (self.min..=self.max).contains(n))
    }

    fn refuse(&self, found: &str) -> ScheduleError {
        let names = match self.names {
            [] => String::new(),
            [first, .., last] => format!(" or `{first}` to `{last}`"),
            [only] => format!(" or `{only}`"),
        };
        let expected = format!("{} to {}{names}, as `a`, `a-b`, `a,b` or `*/n`", self.min, self.max);
        ScheduleError::Field { field: self.name, found: quote(found), expected }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first times after Saturday 1 January 2000, 00:00 UTC, as `MM-DDTHH:MM:SS`.
    fn times(text: &str, count: usize) -> Vec<String> {
        let schedule: Schedule = text.parse().unwrap();
        let next = |at: &Timestamp| schedule.next_after(*at);
        std::iter::successors(next(&Timestamp::from_secs(946_684_800)), next)
            .take(count)
            .map(|at| at.to_string()[5..19].to_owned())
            .collect()
    }

    #[test]
    fn six_fields_begin_with_seconds_and_five_with_minutes() {
        assert_eq!(times("0 */5 * * * *", 2), ["01-01T00:05:00", "01-01T00:10:00"]);
        assert_eq!(times("*/5 * * * *", 2), ["01-01T00:05:00", "01-01T00:10:00"]);
        assert_eq!(times("30 0 3 * * *", 1), ["01-01T03:00:30"]);
        assert_eq!(times("10/20 * * * *", 3), ["01-01T00:10:00", "01-01T00:30:00", "01-01T00:50:00"]);
    }

    #[test]
    fn days_of_the_week_are_counted_from_sunday_as_zero() {
        // 2 January 2000 was a Sunday.
        for sunday in ["0 0 * * 0", "0 0 * * 7", "0 0 * * sun", "0 0 0 * * SUN", "@weekly"] {
            assert_eq!(times(sunday, 2), ["01-02T00:00:00", "01-09T00:00:00"], "{sunday}");
        }
        assert_eq!(times("0 0 * * 1", 1), ["01-03T00:00:00"]);
        for weekend in ["0 0 * * 6-7", "0 0 * * sat-sun", "0 0 * * 0,6"] {
            assert_eq!(
                times(weekend, 3),
                ["01-02T00:00:00", "01-08T00:00:00", "01-09T00:00:00"],
                "{weekend}"
            );
        }
        assert_eq!(times("0 0 * * */3", 3), ["01-02T00:00:00", "01-05T00:00:00", "01-08T00:00:00"]);
    }

    #[test]
    fn either_day_fits_when_both_fields_are_restricted() {
        assert_eq!(
            times("0 0 5 * mon", 4),
            ["01-03T00:00:00", "01-05T00:00:00", "01-10T00:00:00", "01-17T00:00:00"]
        );
        assert_eq!(times("0 0 5 * *", 2), ["01-05T00:00:00", "02-05T00:00:00"]);
        assert_eq!(times("0 0 5 * ?", 1), ["01-05T00:00:00"]);
    }

    #[test]
    fn words_and_intervals_are_understood() {
        assert_eq!(times("@hourly", 1), ["01-01T01:00:00"]);
        assert_eq!(times("@yearly", 1), ["01-01T00:00:00"]);
        assert_eq!(times("@every 90s", 2), ["01-01T00:01:30", "01-01T00:03:00"]);
        assert_eq!(times("0 12 1 JAN-mar *", 3), ["01-01T12:00:00", "02-01T12:00:00", "03-01T12:00:00"]);
    }

    #[test]
    fn a_leap_day_comes_and_the_thirtieth_of_february_never() {
        assert_eq!(times("0 0 29 2 *", 2), ["02-29T00:00:00", "02-29T00:00:00"]);
        assert_eq!("0 0 30 2 *".parse::<Schedule>(), Err(ScheduleError::Never));
    }

    #[test]
    fn anything_else_is_refused_with_its_reason() {
        let refused = |text: &str| text.parse::<Schedule>().unwrap_err().to_string();
        assert_eq!(refused("* * * *"), "expected five fields, or six with seconds first, found 4");
        assert_eq!(refused(""), "expected five fields, or six with seconds first, found 0");
        assert_eq!(refused("0 0 0 1 1 * 2030"), "expected five fields, or six with seconds first, found 7");
        assert_eq!(
            refused("0 25 * * *"),
            "the hour field is `25`, expected 0 to 23, as `a`, `a-b`, `a,b` or `*/n`"
        );
        assert_eq!(
            refused("0 0 * 13 *"),
            "the month field is `13`, expected 1 to 12 or `jan` to `dec`, as `a`, `a-b`, `a,b` or `*/n`"
        );
        for text in ["*/0 * * * *", "5-1 * * * *", "1- * * * *", ", * * * *", "5* * * * *", "+5 * * * *"] {
            assert!(refused(text).starts_with("the minute field is "), "{text}");
        }
        assert!(refused("0 0 L * *").starts_with("the day of month field is `L`"));
        assert!(refused("0 0 * * 8").starts_with("the day of week field is `8`"));
        assert!(refused("@fortnightly").starts_with("unknown word `@fortnightly`"));
        assert!(refused("@every 10ms").contains("at least one second"));
        assert!(refused("@every soon").contains("expected a whole number before `soon`"));
        assert_eq!(refused("TZ=Europe/Paris 0 0 * * *"), ScheduleError::Zone.to_string());
    }
}
