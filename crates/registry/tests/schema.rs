//! The JSON schema and the checker know the same file.

#![allow(clippy::unwrap_used, reason = "what a test cannot unwrap has failed it")]

use std::collections::BTreeSet;

use poolwright_registry::{Topology, schema};
use serde_json::{Value, json};

fn preset() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../queues.toml")).unwrap()
}

/// Every key of the schema, each as the TOML path under which it stands; `x` is a name of one's own.
fn keys(schema: &Value, path: &str, found: &mut BTreeSet<(String, String)>) {
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        found.insert((path.to_owned(), name.clone()));
        keys(inner, &join(path, name), found);
    }
    if schema["additionalProperties"].is_object() {
        keys(&schema["additionalProperties"], &join(path, "x"), found);
    }
    for variant in schema["oneOf"].as_array().into_iter().flatten() {
        let kind = variant["properties"]["kind"]["const"].as_str();
        let path = kind.map_or_else(|| path.to_owned(), |kind| path.replace(".x", &format!(".{kind}")));
        keys(variant, &path, found);
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn all_keys() -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    keys(&schema(), "", &mut found);
    found
}

/// What the checker says of one key with a value that fits nothing.
fn said(path: &str, key: &str) -> Vec<String> {
    let header = if path.is_empty() { String::new() } else { format!("[{path}]\n") };
    let kind = path.strip_prefix("retry.").filter(|_| key != "kind");
    let kind = kind.map_or_else(String::new, |kind| format!("kind = \"{kind}\"\n"));
    let error = Topology::parse("queues.toml", &format!("{header}{kind}{key} = 1979-05-27\n")).unwrap_err();
    error.problems().iter().map(|problem| problem.message.clone()).collect()
}

#[test]
fn the_checker_knows_every_key_of_the_schema() {
    let keys = all_keys();
    assert!(keys.len() > 80, "only {} keys", keys.len());
    for (path, key) in keys {
        let said = said(&path, &key);
        assert!(said.iter().any(|message| message.contains("found the date")), "[{path}] {key}: {said:?}");
    }
}

#[test]
fn the_preset_uses_or_mentions_every_key() {
    let text = preset();
    let words: BTreeSet<&str> = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    for (path, key) in all_keys() {
        assert!(words.contains(key.as_str()), "`{key}` of [{path}] is nowhere in the preset");
    }
}

/// A validator for the part of JSON schema that the schema uses.
fn accepts(schema: &Value, value: &Value) -> bool {
    let fits = |kind: &str| match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("unknown type {other}"),
    };
    let bound = |key: &str, holds: fn(f64, f64) -> bool| match (schema[key].as_f64(), value.as_f64()) {
        (Some(bound), Some(value)) => holds(value, bound),
        _ => true,
    };
    schema["type"].as_str().is_none_or(fits)
        && (schema["const"].is_null() || schema["const"] == *value)
        && bound("minimum", |value, min| value >= min)
        && bound("maximum", |value, max| value <= max)
        && schema["oneOf"]
            .as_array()
            .is_none_or(|variants| variants.iter().filter(|variant| accepts(variant, value)).count() == 1)
        && schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .all(|key| !value[key.as_str().unwrap()].is_null())
        && value.as_array().into_iter().flatten().all(|item| accepts(&schema["items"], item))
        && value.as_object().into_iter().flatten().all(|(key, inner)| match &schema["properties"][key] {
            Value::Null if schema["additionalProperties"].is_object() => {
                accepts(&schema["additionalProperties"], inner)
            }
            Value::Null => schema["additionalProperties"] != json!(false),
            property => accepts(property, inner),
        })
}

#[test]
fn the_schema_accepts_the_preset_and_refuses_a_misspelt_one() {
    let as_json = |text: &str| serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap();
    assert!(accepts(&schema(), &as_json(&preset())));
    for (from, to) in [
        ("max_retry = 3", "max_retrys = 3"),
        ("workers = 8", "workers = 0"),
        ("borrow  = \"always\"", "borrow  = \"never\""),
        ("version = 1", "version = 2"),
        ("kind  = \"fixed\"", "kind  = \"steps\""),
    ] {
        let text = preset();
        assert!(text.contains(from), "{from}");
        assert!(!accepts(&schema(), &as_json(&text.replacen(from, to, 1))), "{to}");
    }
}
