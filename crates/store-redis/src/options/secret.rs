//! A word that is never shown.

use std::fmt;

/// A password. `Debug` does not show it and there is no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps this word.
    pub fn new(word: impl Into<String>) -> Self {
        Self(word.into())
    }

    /// The word, for the server it is meant for.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(word: String) -> Self {
        Self(word)
    }
}

impl From<&str> for Secret {
    fn from(word: &str) -> Self {
        Self(word.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
