//! A line of `enqueue --from`: one task as a JSON object.
//!
//! Invariant: the payload is sent byte for byte as it stands in the line, so that it is equal to what another client
//! would send, and no number in it changes.

use std::fmt;
use std::time::Duration;

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::args::TaskOptions;
use crate::{text, value};

/// The keys, as the options are spelled. With `_` they are the same.
const KEYS: [&str; 11] = [
    "type",
    "payload",
    "delay",
    "at",
    "id",
    "unique-for",
    "retention",
    "header",
    "max-retry",
    "timeout",
    "queue",
];

/// A wrong value is shown in so many columns.
const SHOWN_COLUMNS_MAX: usize = 40;

/// One task.
#[derive(Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) task_type: String,
    /// JSON.
    pub(crate) payload: String,
    pub(crate) options: TaskOptions,
}

/// Reads a line.
///
/// # Errors
/// What is wrong with it, and what was expected.
pub(crate) fn parse(text: &str) -> Result<Line, String> {
    let Members(members) = serde_json::from_str(text).map_err(|why| fault(&why))?;
    let (mut task_type, mut payload, mut options) = (None, None, TaskOptions::default());
    let mut seen = Vec::new();
    for (given, value) in members {
        let key = known(&given)?;
        if seen.contains(&key) {
            return Err(format!("`{key}` is there twice"));
        }
        seen.push(key);
        match key {
            "type" => task_type = Some(word(key, value)?),
            "payload" => payload = Some(value.get().to_owned()),
            _ if value.get() == "null" => {}
            _ => set(&mut options, key, value)?,
        }
    }
    if options.delay.is_some() && options.at.is_some() {
        return Err("`delay` and `at` exclude each other".to_owned());
    }
    let missing = |key| format!("there is no `{key}`, expected an object such as {EXAMPLE}");
    Ok(Line {
        task_type: task_type.ok_or_else(|| missing("type"))?,
        payload: payload.ok_or_else(|| missing("payload"))?,
        options,
    })
}

/// What a line looks like.
const EXAMPLE: &str = r#"{"type":"mail:send","payload":{"to":"ada"},"delay":"90s"}"#;

fn set(options: &mut TaskOptions, key: &str, value: &RawValue) -> Result<(), String> {
    match key {
        "delay" => options.delay = Some(duration(key, value)?),
        "at" => {
            let time = value::time(&word(key, value)?);
            options.at = Some(time.map_err(|why| format!("`{key}`: {why}"))?);
        }
        "id" => options.id = Some(word(key, value)?),
        "unique-for" => options.unique_for = Some(duration(key, value)?),
        "retention" => options.retention = Some(duration(key, value)?),
        "header" => options.header = header(value)?,
        "max-retry" => {
            let expected = || wrong(key, "a whole number", value);
            options.max_retry = Some(serde_json::from_str(value.get()).map_err(|_| expected())?);
        }
        "timeout" => options.timeout = Some(duration(key, value)?),
        "queue" => options.queue = Some(word(key, value)?),
        _ => unreachable!("`{key}` is in the list of keys"),
    }
    Ok(())
}

/// The key as it is listed, whichever way it is spelled.
fn known(given: &str) -> Result<&'static str, String> {
    let spelled = given.replace('_', "-");
    if let Some(key) = KEYS.into_iter().find(|key| *key == spelled) {
        return Ok(key);
    }
    let distance = |key: &str| strsim::damerau_levenshtein(&spelled.to_lowercase(), key);
    let nearest =
        KEYS.into_iter().min_by_key(|key| distance(key)).filter(|key| distance(key) <= key.len() / 3);
    let shown = text::shorten(&text::one_line(given), SHOWN_COLUMNS_MAX);
    Err(match nearest {
        Some(key) => format!("unknown key `{shown}`, did you mean `{key}`?"),
        None => format!("unknown key `{shown}`, there are {}", KEYS.join(", ")),
    })
}

fn word(key: &str, value: &RawValue) -> Result<String, String> {
    serde_json::from_str(value.get()).map_err(|_| wrong(key, "a text", value))
}

fn duration(key: &str, value: &RawValue) -> Result<Duration, String> {
    let text: String =
        serde_json::from_str(value.get()).map_err(|_| wrong(key, "a text such as \"90s\"", value))?;
    value::duration(&text).map_err(|why| format!("`{key}`: {why}"))
}

fn header(value: &RawValue) -> Result<Vec<(String, String)>, String> {
    let expected = || wrong("header", "an object of texts", value);
    let Members(members) = serde_json::from_str(value.get()).map_err(|_| expected())?;
    let text =
        |(name, value): (String, &RawValue)| serde_json::from_str(value.get()).map(|text| (name, text));
    members.into_iter().map(text).collect::<Result<_, _>>().map_err(|_| expected())
}

fn wrong(key: &str, expected: &str, found: &RawValue) -> String {
    let found = text::shorten(&text::one_line(found.get()), SHOWN_COLUMNS_MAX);
    format!("`{key}` is {expected}, and this is {found}")
}

/// What the parser says, without the number of a line that is always the first.
fn fault(why: &serde_json::Error) -> String {
    let said = why.to_string();
    match said.rsplit_once(" at line ") {
        Some((said, _)) => format!("{said} at column {}", why.column()),
        None => said,
    }
}

/// The members of an object in their order, their values as they stand there.
struct Members<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "an object such as {EXAMPLE}")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Collect).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use poolwright::core::Timestamp;

    use super::*;

    #[test]
    fn every_option_is_read_in_either_spelling() {
        let line = parse(
            r#" {"type":"a:b","payload":{},"at":"2026-12-01T08:00:00Z","id":"x","unique_for":"1h","retention":"1d",
                "header":{"k":"v","l":""},"max-retry":0,"timeout":"0s","queue":"low"} "#,
        );
        let options = TaskOptions {
            delay: None,
            at: Some(Timestamp::from_secs(1_796_112_000)),
            id: Some("x".into()),
            unique_for: Some(Duration::from_secs(3_600)),
            retention: Some(Duration::from_secs(86_400)),
            header: vec![("k".into(), "v".into()), ("l".into(), String::new())],
            max_retry: Some(0),
            timeout: Some(Duration::ZERO),
            queue: Some("low".into()),
        };
        assert_eq!(line, Ok(Line { task_type: "a:b".into(), payload: "{}".into(), options }));
    }

    #[test]
    fn a_payload_is_kept_to_the_byte() {
        for payload in
            [r#"{"z":1,"a":1.0,"z":123456789012345678901234567890}"#, "null", "\"\\u00e9\"", "[ 1,\t2 ]"]
        {
            let line = parse(&format!(r#"{{"payload": {payload} ,"type":"t"}}"#)).unwrap();
            assert_eq!(line.payload, payload);
        }
    }

    #[test]
    fn what_is_null_was_not_said() {
        let line = parse(r#"{"type":"t","payload":1,"delay":null,"id":null,"header":null}"#).unwrap();
        assert_eq!(line.options, TaskOptions::default());
    }

    #[test]
    fn a_bad_line_is_told_what_is_wrong_with_it() {
        let with = |more: &str| parse(&format!(r#"{{"type":"t","payload":{{}},{more}}}"#)).unwrap_err();
        assert_eq!(with(r#""dealy":"1s""#), "unknown key `dealy`, did you mean `delay`?");
        assert_eq!(with(r#""uniqe_for":"1s""#), "unknown key `uniqe_for`, did you mean `unique-for`?");
        assert!(
            with(r#""colour":"red""#).starts_with("unknown key `colour`, there are type, payload, delay")
        );
        assert_eq!(with(r#""id":"a","id":"b""#), "`id` is there twice");
        assert_eq!(with(r#""max_retry":1,"max-retry":2"#), "`max-retry` is there twice");
        assert_eq!(with(r#""delay":90"#), "`delay` is a text such as \"90s\", and this is 90");
        assert!(with(r#""delay":"90""#).starts_with("`delay`: the number 90 has no unit; write it like"));
        assert_eq!(with(r#""max_retry":-1"#), "`max-retry` is a whole number, and this is -1");
        assert_eq!(with(r#""header":{"k":1}"#), "`header` is an object of texts, and this is {\"k\":1}");
        assert!(with(r#""at":"tomorrow""#).starts_with("`at`: "));
        let both = with(r#""delay":"1s","at":"2026-12-01T08:00:00Z""#);
        assert_eq!(both, "`delay` and `at` exclude each other");
    }

    #[test]
    fn what_is_no_object_is_told_what_was_expected() {
        assert_eq!(parse("{\"type\":}").unwrap_err(), "expected value at column 9");
        assert!(parse("[]").unwrap_err().contains("expected an object such as {\"type\""));
        assert!(
            parse(r#"{"payload":{}}"#).unwrap_err().starts_with("there is no `type`, expected an object")
        );
        assert!(parse(r#"{"type":"t"}"#).unwrap_err().starts_with("there is no `payload`"));
        assert!(parse(r#"{"type":"t","payload":{}} x"#).unwrap_err().starts_with("trailing characters"));
    }
}
