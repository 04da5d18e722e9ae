//! What the code calls that `#[derive(Tasks)]` writes: small, so that what is written for each variant stays small.
//!
//! It hands out the crates that generated code needs, since the user's crate may lack them or call them otherwise.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

pub use bytes::Bytes;
pub use poolwright_core::BoxError;
pub use serde;

/// To JSON.
///
/// # Errors
/// When a field does not serialize.
pub fn to_json(fields: &impl serde::Serialize) -> Result<Bytes, BoxError> {
    Ok(serde_json::to_vec(fields)?.into())
}

/// From JSON. An empty payload reads as `null`, as in [`crate::TaskType::decode`].
///
/// # Errors
/// When it is no JSON, or not of these fields.
pub fn from_json<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, BoxError> {
    let text = if bytes.is_empty() { b"null" } else { bytes };
    Ok(serde_json::from_slice(text)?)
}

/// The payload of a variant without fields.
#[must_use]
pub const fn no_fields() -> Bytes {
    Bytes::from_static(b"{}")
}

/// Accepts what stands for "no fields": an object (producers may add fields that are not ours to know), `null`, nothing.
///
/// # Errors
/// For anything else.
pub fn expect_no_fields(bytes: &[u8], variant: &str) -> Result<(), BoxError> {
    match from_json::<Option<NoFields>>(bytes) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("`{variant}` has no fields: {error}").into()),
    }
}

/// An object of whatever fields. A derived struct without fields would also take an empty list.
struct NoFields;

impl<'de> Deserialize<'de> for NoFields {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Self)
    }
}

impl<'de> Visitor<'de> for NoFields {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`{}`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(self)
    }
}

/// The refusal of a task type that the enum does not have.
#[must_use]
pub fn unknown_type(name: &str, known: &[&str]) -> BoxError {
    format!("expected a task of type `{}`, this one is `{name}`", known.join("`, `")).into()
}
