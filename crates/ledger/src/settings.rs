//! Settings that an operator changed: they win over the environment and the file.

use std::collections::BTreeMap;

use poolwright_core::Timestamp;

use crate::{Error, Reply};

/// The longest key of a setting, in bytes.
pub const KEY_BYTES_MAX: usize = 255;

/// One setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Its key, as the file names it (`asynq.core_concurrency`).
    pub key: String,
    /// Its value as text.
    pub value: String,
    /// When it was set.
    pub at: Timestamp,
}

impl Setting {
    /// Whether this can be a key; every ledger asks before it sets one.
    ///
    /// # Errors
    /// [`Error::Refused`]: it is empty, longer than [`KEY_BYTES_MAX`] bytes or has control characters.
    pub fn check_key(key: &str) -> Result<(), Error> {
        let why = match key {
            _ if key.trim().is_empty() => "a setting's key must not be empty".to_owned(),
            _ if key.len() > KEY_BYTES_MAX => {
                format!("a setting's key has at most {KEY_BYTES_MAX} bytes, this one has {}", key.len())
            }
            _ if key.chars().any(char::is_control) => {
                format!("a setting's key has no control characters, this is {key:?}")
            }
            _ => return Ok(()),
        };
        Err(Error::Refused { why })
    }
}

/// Keeps settings.
pub trait Settings: Send + Sync {
    /// All of them.
    fn settings(&self) -> Reply<'_, Vec<Setting>>;

    /// Sets one; replaces what was there.
    ///
    /// # Errors
    /// Those of [`Setting::check_key`]; [`Error::Unavailable`].
    fn set(&self, key: String, value: String) -> Reply<'_, ()>;

    /// Removes one, so that environment and file count again; false when it was not set.
    fn unset(&self, key: String) -> Reply<'_, bool>;

    /// A snapshot for the registry.
    fn snapshot(&self) -> Reply<'_, BTreeMap<String, String>> {
        Box::pin(async { Ok(self.settings().await?.into_iter().map(|s| (s.key, s.value)).collect()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_nobody_could_find_again_is_refused() {
        assert_eq!(Setting::check_key("asynq.core_concurrency"), Ok(()));
        assert_eq!(Setting::check_key(&"k".repeat(KEY_BYTES_MAX)), Ok(()));
        for (key, why) in [
            (String::new(), "must not be empty"),
            (" ".to_owned(), "must not be empty"),
            ("k".repeat(KEY_BYTES_MAX + 1), "at most 255 bytes, this one has 256"),
            ("a\nb".to_owned(), r#"no control characters, this is "a\nb""#),
        ] {
            let said = Setting::check_key(&key).unwrap_err().to_string();
            assert!(said.contains(why), "{key:?}: {said}");
        }
    }
}
