//! Id templates: `wiki-finalize-{knowledge_base_id}`.
//!
//! A template without a field gives every task the same id: one at a time for the whole type. `{{` and `}}` stand
//! for the braces themselves.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::path::{Path, PathError, Use};

/// A checked id template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    text: Arc<str>,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Field(Path),
}

/// Why a text is no id template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TemplateError {
    #[error("it is empty")]
    Empty,
    #[error("`{{` opens a field that nothing closes")]
    Open,
    #[error("`}}` closes a field that nothing opened")]
    Close,
    #[error("the field `{0}` is no payload path: {1}")]
    Field(String, PathError),
    #[error("it holds the control character {0:?}")]
    Control(char),
}

impl Template {
    /// Reads a template.
    pub(crate) fn parse(text: &str) -> Result<Self, TemplateError> {
        if text.trim().is_empty() {
            return Err(TemplateError::Empty);
        }
        if let Some(found) = text.chars().find(|c| c.is_control()) {
            return Err(TemplateError::Control(found));
        }
        let (mut parts, mut literal, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            let after = &rest[at + 1..];
            if let Some(next) = after.strip_prefix(brace) {
                literal.push_str(brace);
                rest = next;
                continue;
            }
            let (name, next) = match brace {
                "{" => after.split_once('}').ok_or(TemplateError::Open)?,
                _ => return Err(TemplateError::Close),
            };
            let field =
                Path::parse(name, Use::Field).map_err(|why| TemplateError::Field(name.to_owned(), why))?;
            if !literal.is_empty() {
                parts.push(Part::Literal(std::mem::take(&mut literal)));
            }
            parts.push(Part::Field(field));
            rest = next;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Ok(Self { text: text.into(), parts })
    }

    /// The template as written.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// The fields it needs.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Literal(_) => None,
            Part::Field(path) => Some(path.as_str()),
        })
    }

    /// The id of this payload.
    ///
    /// # Errors
    /// The name of the first field that is absent, empty, or no text and no whole number.
    pub(crate) fn render(&self, payload: &Value) -> Result<String, &str> {
        let mut id = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(text) => id.push_str(text),
                Part::Field(path) => match path.ids(payload).first() {
                    Some(value) => id.push_str(value),
                    None => return Err(path.as_str()),
                },
            }
        }
        Ok(id)
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// How to write a template.
pub(crate) const CURE: &str = "write text with payload fields in braces: `{task_id}` or `sync-{source.id}`";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn render(template: &str) -> Result<String, String> {
        let payload = json!({ "a": "x", "n": 7, "deep": { "id": "y" }, "empty": "", "list": [1] });
        Template::parse(template).unwrap().render(&payload).map_err(str::to_owned)
    }

    #[test]
    fn fields_are_filled_from_the_payload() {
        assert_eq!(render("{a}"), Ok("x".into()));
        assert_eq!(render("p-{a}:{n}-{deep.id}!"), Ok("p-x:7-y!".into()));
        assert_eq!(render("only-one"), Ok("only-one".into()));
        assert_eq!(render("{{{a}}}"), Ok("{x}".into()));
    }

    #[test]
    fn a_field_that_is_absent_or_empty_is_named() {
        assert_eq!(render("{a}-{missing}"), Err("missing".into()));
        assert_eq!(render("{empty}"), Err("empty".into()));
        assert_eq!(render("{list}"), Err("list".into()));
    }

    #[test]
    fn a_broken_template_is_refused_with_its_reason() {
        for (text, why) in [
            (" ", TemplateError::Empty),
            ("{a", TemplateError::Open),
            ("a}", TemplateError::Close),
            ("{}", TemplateError::Field("".into(), PathError::Empty)),
            ("{a[]}", TemplateError::Field("a[]".into(), PathError::EachElsewhere)),
            ("a\nb", TemplateError::Control('\n')),
        ] {
            assert_eq!(Template::parse(text), Err(why), "{text}");
        }
        assert_eq!(TemplateError::Open.to_string(), "`{` opens a field that nothing closes");
    }
}
