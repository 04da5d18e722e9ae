//! Where settings that an operator changed come from.

use std::collections::BTreeMap;

/// Settings that override the file, by key (`asynq.core_concurrency`). A plain read of values already fetched:
/// whoever talks to a database takes a snapshot first.
pub trait SettingsSource: Send + Sync {
    /// The value as it was written, or none when nobody set it.
    fn get(&self, key: &str) -> Option<String>;
}

/// A snapshot, or settings made by hand in a test.
impl SettingsSource for BTreeMap<String, String> {
    fn get(&self, key: &str) -> Option<String> {
        Self::get(self, key).cloned()
    }
}

/// No settings at all.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSettings;

impl SettingsSource for NoSettings {
    fn get(&self, _key: &str) -> Option<String> {
        None
    }
}
