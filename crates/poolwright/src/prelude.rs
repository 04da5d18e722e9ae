//! What nearly every program needs: `use poolwright::prelude::*;`.

pub use std::time::Duration;

pub use poolwright_client::Client;
pub use poolwright_core::{BoxError, Scope, Subject, TaskError, Timestamp};
pub use poolwright_derive::{TaskType, Tasks};
pub use poolwright_handler::{Context, Output, Payload, Raw, State, TaskType};
pub use poolwright_inspector::TaskInspector;
pub use poolwright_registry::Topology;
pub use serde::{Deserialize, Serialize};

pub use crate::{Connect, Orchestrator, Running};
