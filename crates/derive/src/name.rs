//! The names of task types: made from variants, and held to the rule that every store relies on.

use proc_macro2::Span;
use syn::{Error, LitStr, Result};

/// The longest name, in bytes; `poolwright_core::name::NAME_BYTES_MAX` is the same.
const BYTES_MAX: usize = 255;

/// Refuses what `poolwright_core::TypeName` would refuse at run time.
pub(crate) fn check(name: &str, span: Span) -> Result<()> {
    if name.trim().is_empty() {
        return Err(Error::new(span, "a task type must not be empty"));
    }
    if name.len() > BYTES_MAX {
        let bytes = name.len();
        let message = format!("a task type has at most {BYTES_MAX} bytes, this one has {bytes}");
        return Err(Error::new(span, message));
    }
    match name.chars().find(|c| c.is_control()) {
        Some(found) => Err(control(found, span)),
        None => Ok(()),
    }
}

/// Refuses a part of a name that no name may hold; a part may be empty.
pub(crate) fn check_characters(part: &LitStr) -> Result<()> {
    match part.value().chars().find(|c| c.is_control()) {
        Some(found) => Err(control(found, part.span())),
        None => Ok(()),
    }
}

fn control(found: char, span: Span) -> Error {
    Error::new(span, format!("a task type must not contain control characters, this one has {found:?}"))
}

/// `SendEmail` → `send_email`, `HTTPPing` → `http_ping`, `Resize2D` → `resize2_d`.
///
/// A word begins at a capital that follows a small letter or a digit, and at the last capital of a run before a small
/// letter, so that acronyms stay whole.
pub(crate) fn snake_case(variant: &str) -> String {
    let letters: Vec<char> = variant.chars().collect();
    let mut name = String::with_capacity(variant.len() + 4);
    for (at, &letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| letters[at]);
        let next_is_small = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
        let begins =
            letter.is_uppercase() && before.is_some_and(|c| c != '_' && (!c.is_uppercase() || next_is_small));
        if begins {
            name.push('_');
        }
        name.extend(letter.to_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_becomes_snake_case() {
        for (variant, name) in [
            ("SendEmail", "send_email"),
            ("GenerateSitemap", "generate_sitemap"),
            ("ConvertWebP", "convert_web_p"),
            ("HTTPPing", "http_ping"),
            ("OCR", "ocr"),
            ("Resize2D", "resize2_d"),
            ("Already_Split", "already_split"),
            ("ÜberWeisung", "über_weisung"),
        ] {
            assert_eq!(snake_case(variant), name);
        }
    }

    #[test]
    fn a_name_is_held_to_the_rule_of_the_stores() {
        let refusal = |name: &str| check(name, Span::call_site()).map_err(|error| error.to_string());
        assert_eq!(refusal("document:process"), Ok(()));
        assert_eq!(refusal(" "), Err("a task type must not be empty".to_owned()));
        assert!(refusal(&"é".repeat(128)).unwrap_err().contains("this one has 256"));
        assert!(refusal("a\tb").unwrap_err().contains("'\\t'"));
    }
}
