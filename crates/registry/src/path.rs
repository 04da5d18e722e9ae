//! Payload paths: where in a JSON payload a key sits.
//!
//! | path | gives | where |
//! | --- | --- | --- |
//! | `a`, `a.b` | the value | everywhere |
//! | `list[]`, `list[].id` | each element, or a field of each | `subject`, `scopes` |
//! | `a\|b` | the first of them that is there | `tenant`, `shows` |
//! | `list#count` | how many elements, shown as `list_count` (`x_ids#count` as `x_count`) | `shows` |
//! | `at#time` | a Unix time of any unit, shown as RFC 3339 | `shows` |
//!
//! Invariant: reading a payload never fails; what is absent, empty or of another type gives nothing.

use std::fmt;
use std::sync::Arc;

use poolwright_core::{Timestamp, text};
use serde_json::Value;

/// The longest text that is shown of a payload field, in bytes.
pub(crate) const SHOWN_BYTES_MAX: usize = 255;

/// Where a path stands, which decides what it may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// `tenant`: one value.
    One,
    /// `subject` and `scopes`: one or many values.
    Many,
    /// `shows`.
    Shown,
    /// `fields` and id templates: one value, no alternatives.
    Field,
}

/// What is taken of the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    Value,
    Count,
    Time,
}

/// A checked payload path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path {
    text: Arc<str>,
    alternatives: Vec<Vec<Step>>,
    measure: Measure,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    name: Arc<str>,
    each: bool,
}

/// Why a text is no path in its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathError {
    #[error("a part is empty")]
    Empty,
    #[error("`{0}` must not stand in a name")]
    Character(char),
    #[error("unknown suffix `#{0}`, expected `#count` or `#time`")]
    Suffix(String),
    #[error("`#` may only stand in `shows`")]
    SuffixElsewhere,
    #[error("`|` may only stand in `shows` and `tenant`")]
    AlternativesElsewhere,
    #[error("`[]` may only stand in `subject` and `scopes`")]
    EachElsewhere,
}

impl PathError {
    /// What to write instead.
    pub(crate) fn cure(&self, place: Use) -> &'static str {
        match (self, place) {
            (Self::EachElsewhere, Use::Shown) => "a list is shown by its length: write `list#count`",
            (_, Use::Shown) => "write names joined by dots: `a`, `a.b`, `a|b`, `list#count` or `at#time`",
            (_, Use::Many) => "write names joined by dots: `a`, `a.b`, `list[]` or `list[].id`",
            (_, Use::One) => "write names joined by dots: `a`, `a.b` or `a|b`",
            (_, Use::Field) => "write names joined by dots: `a` or `a.b`",
        }
    }
}

impl Path {
    /// Reads a path for its place.
    pub(crate) fn parse(source: &str, place: Use) -> Result<Self, PathError> {
        let (steps, measure) = match source.split_once('#') {
            None => (source, Measure::Value),
            Some(_) if place != Use::Shown => return Err(PathError::SuffixElsewhere),
            Some((steps, "count")) => (steps, Measure::Count),
            Some((steps, "time")) => (steps, Measure::Time),
            Some((_, suffix)) => return Err(PathError::Suffix(suffix.to_owned())),
        };
        if steps.contains('|') && !matches!(place, Use::Shown | Use::One) {
            return Err(PathError::AlternativesElsewhere);
        }
        let alternatives = steps.split('|').map(parse_steps).collect::<Result<Vec<_>, _>>()?;
        if place != Use::Many && alternatives.iter().flatten().any(|step| step.each) {
            return Err(PathError::EachElsewhere);
        }
        Ok(Self { text: source.into(), alternatives, measure })
    }

    /// The path as written.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// The single fields it names, without lists: what an id template may use.
    pub(crate) fn fields(&self) -> impl Iterator<Item = String> {
        let single = self.measure != Measure::Count;
        self.alternatives
            .iter()
            .filter(move |steps| single && !steps.iter().any(|step| step.each))
            .map(|steps| steps.iter().map(|step| &*step.name).collect::<Vec<_>>().join("."))
    }

    /// The name under which `shows` prints it.
    pub(crate) fn shown_as(&self) -> String {
        let name = self.alternatives.first().and_then(|steps| steps.last()).map_or("", |step| &step.name);
        match self.measure {
            Measure::Count => format!("{}_count", name.strip_suffix("_ids").unwrap_or(name)),
            Measure::Value | Measure::Time => name.to_owned(),
        }
    }

    /// Every id it finds in the payload: texts that are not empty, and whole numbers.
    pub(crate) fn ids(&self, payload: &Value) -> Vec<Arc<str>> {
        let found = self.alternatives.iter().map(|steps| {
            let mut ids = Vec::new();
            collect(payload, steps, &mut ids);
            ids
        });
        found.into_iter().find(|ids| !ids.is_empty()).unwrap_or_default()
    }

    /// What an operator sees of it: a scalar, a count or a time; none when it is absent or empty.
    pub(crate) fn shown(&self, payload: &Value) -> Option<Value> {
        let mut found = self.alternatives.iter().filter_map(|steps| follow(payload, steps));
        found.find_map(|value| match self.measure {
            Measure::Count => value.as_array().map(|list| Value::from(list.len())),
            Measure::Time => match value.as_i64() {
                Some(0) => None,
                Some(number) => Some(Value::from(unix_time(number).to_string())),
                None => scalar(value),
            },
            Measure::Value => scalar(value),
        })
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn parse_steps(text: &str) -> Result<Vec<Step>, PathError> {
    let step = |part: &str| {
        let (name, each) = part.strip_suffix("[]").map_or((part, false), |name| (name, true));
        if name.trim().is_empty() {
            return Err(PathError::Empty);
        }
        match name.chars().find(|c| c.is_control() || c.is_whitespace() || "[]{}".contains(*c)) {
            Some(c) => Err(PathError::Character(c)),
            None => Ok(Step { name: name.into(), each }),
        }
    };
    text.split('.').map(step).collect()
}

/// Follows steps that name no list.
fn follow<'v>(payload: &'v Value, steps: &[Step]) -> Option<&'v Value> {
    steps.iter().try_fold(payload, |value, step| value.get(&*step.name))
}

fn collect(value: &Value, steps: &[Step], ids: &mut Vec<Arc<str>>) {
    let Some((step, rest)) = steps.split_first() else {
        ids.extend(id(value));
        return;
    };
    match value.get(&*step.name) {
        Some(Value::Array(list)) if step.each => list.iter().for_each(|element| collect(element, rest, ids)),
        Some(next) if !step.each => collect(next, rest, ids),
        _ => {}
    }
}

/// The id that a value is: a text that is not blank, or a whole number.
fn id(value: &Value) -> Option<Arc<str>> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.as_str().into()),
        Value::Number(number) if number.is_i64() || number.is_u64() => Some(number.to_string().into()),
        _ => None,
    }
}

fn scalar(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) if !text.is_empty() => Some(Value::from(text::cut(text, SHOWN_BYTES_MAX))),
        Value::Number(_) | Value::Bool(_) => Some(value.clone()),
        _ => None,
    }
}

/// A Unix time whose unit follows from its size: nanoseconds, microseconds, milliseconds or seconds.
fn unix_time(number: i64) -> Timestamp {
    match number.unsigned_abs() {
        n if n > 100_000_000_000_000_000 => Timestamp::from_micros(number / 1_000),
        n if n > 100_000_000_000_000 => Timestamp::from_micros(number),
        n if n > 10_000_000_000 => Timestamp::from_millis(number),
        _ => Timestamp::from_secs(number),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ids(path: &str, payload: &Value) -> Vec<String> {
        let path = Path::parse(path, Use::Many).unwrap();
        path.ids(payload).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn ids_are_found_in_fields_lists_and_lists_of_objects() {
        let payload = json!({
            "a": "x", "n": 42, "deep": { "id": "y" }, "list": ["p", "", 7, null, "q"],
            "rows": [{ "id": "r" }, {}, { "id": 8 }], "blank": " ", "float": 1.5, "yes": true,
        });
        assert_eq!(ids("a", &payload), ["x"]);
        assert_eq!(ids("n", &payload), ["42"]);
        assert_eq!(ids("deep.id", &payload), ["y"]);
        assert_eq!(ids("list[]", &payload), ["p", "7", "q"]);
        assert_eq!(ids("rows[].id", &payload), ["r", "8"]);
        for nothing in ["blank", "float", "yes", "deep", "list", "missing", "a.b", "a[]", "rows"] {
            assert!(ids(nothing, &payload).is_empty(), "{nothing}");
        }
        assert!(ids("a", &json!([1])).is_empty() && ids("a", &Value::Null).is_empty());
    }

    #[test]
    fn what_is_shown_is_small_and_never_an_object() {
        let payload = json!({
            "id": "kn_42", "n": 0, "empty": "", "object": { "secret": 1 }, "x_ids": [1, 2, 3], "items": [],
            "long": "é".repeat(300), "seconds": 1_709_210_096, "nanos": 1_709_210_096_007_000_000_i64, "zero": 0,
        });
        let show = |path: &str| {
            let path = Path::parse(path, Use::Shown).unwrap();
            (path.shown_as(), path.shown(&payload))
        };
        assert_eq!(show("id"), ("id".into(), Some(json!("kn_42"))));
        assert_eq!(show("n").1, Some(json!(0)));
        assert_eq!(show("missing|id"), ("missing".into(), Some(json!("kn_42"))));
        assert_eq!(show("x_ids#count"), ("x_count".into(), Some(json!(3))));
        assert_eq!(show("items#count"), ("items_count".into(), Some(json!(0))));
        assert_eq!(show("seconds#time").1, Some(json!("2024-02-29T12:34:56.000Z")));
        assert_eq!(show("nanos#time").1, Some(json!("2024-02-29T12:34:56.007Z")));
        assert_eq!(show("id#time").1, Some(json!("kn_42")));
        assert_eq!((show("zero#time").1, show("zero|id").1), (None, Some(json!(0))));
        assert_eq!((show("empty").1, show("object").1, show("id#count").1), (None, None, None));
        assert!(show("long").1.unwrap().as_str().unwrap().len() <= SHOWN_BYTES_MAX);
    }

    #[test]
    fn a_path_is_refused_where_it_has_no_meaning() {
        for (text, place, why) in [
            ("", Use::One, PathError::Empty),
            ("a..b", Use::One, PathError::Empty),
            ("[]", Use::Many, PathError::Empty),
            ("a|", Use::Shown, PathError::Empty),
            ("a b", Use::One, PathError::Character(' ')),
            ("a[0]", Use::Many, PathError::Character('[')),
            ("{a}", Use::Field, PathError::Character('{')),
            ("a#size", Use::Shown, PathError::Suffix("size".into())),
            ("a#count", Use::Many, PathError::SuffixElsewhere),
            ("a|b", Use::Many, PathError::AlternativesElsewhere),
            ("a[]", Use::Shown, PathError::EachElsewhere),
            ("a[]", Use::One, PathError::EachElsewhere),
        ] {
            assert_eq!(Path::parse(text, place), Err(why), "{text}");
        }
    }

    #[test]
    fn only_single_fields_may_serve_an_id() {
        let fields = |text, place| Path::parse(text, place).unwrap().fields().collect::<Vec<_>>();
        assert_eq!(fields("a.b|c", Use::Shown), ["a.b", "c"]);
        assert_eq!(fields("at#time", Use::Shown), ["at"]);
        assert!(fields("list#count", Use::Shown).is_empty());
        assert!(fields("list[].id", Use::Many).is_empty());
    }
}
