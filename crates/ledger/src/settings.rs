//! Settings that an operator changed: they win over the environment and the file.

use std::collections::BTreeMap;

use poolwright_core::Timestamp;

use crate::Reply;

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

/// Keeps settings.
pub trait Settings: Send + Sync {
    /// All of them.
    fn settings(&self) -> Reply<'_, Vec<Setting>>;

    /// Sets one; replaces what was there.
    fn set(&self, key: String, value: String) -> Reply<'_, ()>;

    /// Removes one, so that environment and file count again; false when it was not set.
    fn unset(&self, key: String) -> Reply<'_, bool>;

    /// A snapshot for the registry.
    fn snapshot(&self) -> Reply<'_, BTreeMap<String, String>> {
        Box::pin(async { Ok(self.settings().await?.into_iter().map(|s| (s.key, s.value)).collect()) })
    }
}
