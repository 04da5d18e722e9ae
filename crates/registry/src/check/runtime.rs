//! `[limits]` and `[runtime]`.

use crate::duration;
use crate::file::node::Size;
use crate::file::{Got, View};
use crate::problem::Fault;
use crate::topology::Runtime;

/// The largest payload of a type that does not say otherwise.
pub(super) fn payload(root: &View<'_>) -> Got<Size> {
    root.table("limits").value("payload")
}

pub(super) fn read(root: &View<'_>) -> Runtime {
    let view = root.table("runtime");
    let (lease, heartbeat) = (view.value("lease").value, view.value("heartbeat").value);
    let (grace, stop_grace) = (view.value("grace").value, view.value("stop_grace"));
    let max_stall = view.value("max_stall");
    if max_stall.value <= stop_grace.value {
        let message = format!(
            "`max_stall` ({}) must be longer than `stop_grace` ({}): a handler stalls only after that",
            duration::show(max_stall.value),
            duration::show(stop_grace.value)
        );
        view.fault(Fault::new(&max_stall.span, message));
    }
    Runtime { lease, heartbeat, grace, stop_grace: stop_grace.value, max_stall: max_stall.value }
}
