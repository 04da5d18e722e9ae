//! The report of `poolwright check`: every value in force, and where it came from.

use serde::Serialize;

use crate::Topology;
use crate::resolve::Origin;

/// One value in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// Its place in the file: `pools.core.workers`, `tasks."document:process".timeout`.
    pub path: String,
    /// The value as the file would write it, without quotes.
    pub value: String,
    /// Where it came from.
    pub origin: Origin,
}

/// Every value in force, in the order of the file's tables. A key without a value and a default has no row.
#[must_use]
pub fn report(topology: &Topology) -> &[Row] {
    topology.rows()
}
