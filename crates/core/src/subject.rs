//! What a task is about: the keys by which people look for work and stop it.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// One thing a task works for, such as `knowledge/kn_42`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Subject {
    /// The kind, as the file names it under `subject`.
    pub kind: Arc<str>,
    /// The id in the application.
    pub id: Arc<str>,
}

/// A larger thing that a task belongs to, such as `knowledge_base/kb_7`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Scope {
    /// The kind, as the file names it under `scopes`.
    pub kind: Arc<str>,
    /// The id in the application.
    pub id: Arc<str>,
}

/// The customer a task is done for; the file names the payload field under `tenant`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tenant(pub Arc<str>);

impl Subject {
    /// A subject of this kind and id.
    pub fn new(kind: impl Into<Arc<str>>, id: impl Into<Arc<str>>) -> Self {
        Self { kind: kind.into(), id: id.into() }
    }
}

impl Scope {
    /// A scope of this kind and id.
    pub fn new(kind: impl Into<Arc<str>>, id: impl Into<Arc<str>>) -> Self {
        Self { kind: kind.into(), id: id.into() }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.id)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.id)
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
