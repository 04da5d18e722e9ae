//! The JSON schema of the file, for editors: made from the key tables that the checker reads.

use serde_json::{Map, Value, json};

use crate::file::keys::ROOT;
use crate::file::kind::{Key, Kind, Literal, Noun, Table, Tagged};
use crate::words::Word;

/// A duration, as `crate::duration` reads it.
const DURATION: &str = "^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$";
const SIZE: &str = "^[0-9]+([KkMmGg][Ii]?)?[Bb]$";
const VARIABLE: &str = "^[A-Za-z_][A-Za-z0-9_]*$";

/// The JSON schema (draft 7) of `queues.toml`.
///
/// An editor that knows it completes keys, shows what they mean and marks unknown ones. It says what each value may
/// be; whether the parts fit together only the checker knows.
#[must_use]
pub fn schema() -> Value {
    let mut schema = table(&ROOT);
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!("queues.toml");
    schema
}

fn table(table: &Table) -> Value {
    object(table.doc, table.keys().map(|key| (key.name, of_key(key), key.required)))
}

fn object<'a>(doc: &str, keys: impl Iterator<Item = (&'a str, Value, bool)>) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for (name, schema, is_required) in keys {
        properties.insert(name.to_owned(), schema);
        if is_required {
            required.push(name);
        }
    }
    let mut schema = json!({ "type": "object", "description": doc, "properties": properties });
    schema["additionalProperties"] = json!(false);
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn of_key(key: &Key) -> Value {
    let mut schema = kind(key.kind);
    schema["description"] = json!(key.doc);
    if let Some(default) = key.default {
        schema["default"] = literal(default);
    }
    schema
}

fn literal(default: Literal) -> Value {
    match default {
        Literal::Text(text) => json!(text),
        Literal::Integer(number) => json!(number),
        Literal::Number(number) => json!(number),
        Literal::Bool(value) => json!(value),
        Literal::Words(words) => json!(words),
    }
}

fn kind(kind: Kind) -> Value {
    match kind {
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Integer { min, max, .. } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Number { min, max } => json!({ "type": "number", "minimum": min, "maximum": max }),
        Kind::Duration { .. } => duration(),
        Kind::Durations { most } => {
            json!({ "type": "array", "minItems": 1, "maxItems": most, "items": duration() })
        }
        Kind::Size => json!({ "type": "string", "pattern": SIZE }),
        Kind::Variable => json!({ "type": "string", "pattern": VARIABLE }),
        Kind::Label
        | Kind::Setting
        | Kind::Name(_)
        | Kind::Reference(_)
        | Kind::Path(_)
        | Kind::Template
        | Kind::Schedule => text(),
        Kind::Word(words) => word(words),
        Kind::Words(words) => json!({ "type": "array", "uniqueItems": true, "items": word(words) }),
        Kind::Paths(_) => {
            json!({ "oneOf": [text(), { "type": "array", "uniqueItems": true, "items": text() }] })
        }
        Kind::Map(noun, value) => map(noun, *value),
        Kind::Table(inner) => table(inner),
        Kind::Tagged(tagged) => one_of(tagged),
    }
}

fn text() -> Value {
    json!({ "type": "string", "minLength": 1 })
}

fn duration() -> Value {
    json!({ "type": "string", "minLength": 2, "pattern": DURATION })
}

fn word(words: &[Word]) -> Value {
    let one = |word: &Word| json!({ "const": word.text, "description": word.doc.trim() });
    json!({ "type": "string", "oneOf": words.iter().map(one).collect::<Vec<_>>() })
}

fn map(noun: Noun, value: Kind) -> Value {
    let mut schema = json!({ "type": "object", "additionalProperties": kind(value) });
    if noun == Noun::Class {
        let classes = poolwright_core::Class::ALL.into_iter().filter(|class| class.takes_policy());
        schema["propertyNames"] = json!({ "enum": classes.map(|class| class.as_str()).collect::<Vec<_>>() });
    }
    schema
}

/// One schema for each word under the tag.
fn one_of(tagged: &Tagged) -> Value {
    let variant = |(word, table): &(&str, Table)| {
        let tag = json!({ "const": word, "description": tagged.tag.doc });
        let keys = table.keys().map(|key| (key.name, of_key(key), key.required));
        object(table.doc, std::iter::once((tagged.tag.name, tag, true)).chain(keys))
    };
    json!({ "oneOf": tagged.variants.iter().map(variant).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::file::walk::all_tables;

    /// The keys of every table in a schema.
    fn tables(schema: &Value, found: &mut BTreeSet<BTreeSet<String>>) {
        if let Some(properties) = schema["properties"].as_object() {
            let keys = properties.iter().filter(|(name, key)| *name != "kind" || key["const"].is_null());
            found.insert(keys.map(|(name, _)| name.clone()).collect());
            properties.values().for_each(|inner| tables(inner, found));
        }
        tables_below(schema, found);
    }

    fn tables_below(schema: &Value, found: &mut BTreeSet<BTreeSet<String>>) {
        if schema["additionalProperties"].is_object() {
            tables(&schema["additionalProperties"], found);
        }
        schema["oneOf"].as_array().into_iter().flatten().for_each(|variant| tables(variant, found));
    }

    #[test]
    fn the_schema_has_exactly_the_keys_of_the_checker() {
        let mut schemas = BTreeSet::new();
        tables(&schema(), &mut schemas);
        let keys = |table: &Table| table.keys().map(|key| key.name.to_owned()).collect();
        let checked: BTreeSet<BTreeSet<String>> = all_tables().into_iter().map(keys).collect();
        assert_eq!(schemas, checked);
        assert!(checked.len() > 10);
    }

    #[test]
    fn every_key_says_what_it_means() {
        for table in all_tables() {
            for key in table.keys() {
                let ends = key.doc.ends_with('.');
                assert!(ends && !key.doc.contains("  "), "{} {}: {}", table.title, key.name, key.doc);
            }
        }
    }
}
