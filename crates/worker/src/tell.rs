//! Events: one for each change of a task's state, with the same field names everywhere and no payloads.

/// An event about a task: level, record, and what `tracing` takes after the fields that every event has.
macro_rules! tell {
    ($level:ident, $task:expr, $($rest:tt)+) => {{
        let task: &poolwright_core::TaskRecord = $task;
        tracing::$level!(
            task_id = %task.key.id,
            task_type = %task.task_type,
            queue = %task.key.queue,
            attempt = task.retried.saturating_add(1),
            $($rest)+
        );
    }};
}
