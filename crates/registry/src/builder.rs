//! A topology made in code. It is written as a file and read by the checks of all files.

use crate::error::Error;
use crate::topology::Topology;

/// Builds a [`Topology`] in code.
///
/// ```
/// use poolwright_registry::Topology;
///
/// let topology = Topology::builder()
///     .pool("core", 8, [("default", 1), ("urgent", 3)])
///     .elastic("shared", 2, [("default", 1)])
///     .task("mail:send", "urgent")
///     .task_with("mail:digest", "default", "max_retry = 3\ntimeout = \"5m\"")
///     .build()?;
/// assert_eq!(topology.pools().len(), 2);
/// assert_eq!(topology.task_type("mail:digest").unwrap().max_retry, 3);
/// # Ok::<(), poolwright_registry::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Builder {
    text: String,
}

impl Builder {
    /// A pool with queues of its own, each with its weight.
    #[must_use]
    pub fn pool<'a>(
        self,
        name: &str,
        workers: usize,
        queues: impl IntoIterator<Item = (&'a str, u32)>,
    ) -> Self {
        self.pool_of(name, workers, "queues", queues)
    }

    /// A pool that borrows the queues of others, each with its weight.
    #[must_use]
    pub fn elastic<'a>(
        self,
        name: &str,
        workers: usize,
        borrows: impl IntoIterator<Item = (&'a str, u32)>,
    ) -> Self {
        self.pool_of(name, workers, "borrows", borrows)
    }

    fn pool_of<'a>(
        self,
        name: &str,
        workers: usize,
        key: &str,
        queues: impl IntoIterator<Item = (&'a str, u32)>,
    ) -> Self {
        let queues: Vec<String> =
            queues.into_iter().map(|(queue, weight)| format!("{} = {weight}", quoted(queue))).collect();
        self.lines(&format!(
            "[pools.{}]\nworkers = {workers}\n{key} = {{ {} }}",
            quoted(name),
            queues.join(", ")
        ))
    }

    /// A task type with the default rules.
    #[must_use]
    pub fn task(self, task_type: &str, queue: &str) -> Self {
        self.task_with(task_type, queue, "")
    }

    /// A task type with rules written as in the file, one a line: `max_retry = 3`.
    #[must_use]
    pub fn task_with(self, task_type: &str, queue: &str, rules: &str) -> Self {
        self.lines(&format!("[tasks.{}]\nqueue = {}\n{rules}", quoted(task_type), quoted(queue)))
    }

    /// Further tables, written as in the file: `[retry.soon]` and what belongs to it.
    #[must_use]
    pub fn lines(mut self, tables: &str) -> Self {
        self.text.push_str(tables);
        self.text.push('\n');
        self
    }

    /// Checks it all.
    ///
    /// # Errors
    /// [`Error::Refused`] with every mistake, shown in the text of the file that was written.
    pub fn build(self) -> Result<Topology, Error> {
        // Without settings and variables there is nothing to warn about.
        Topology::parse("topology made in code", &format!("version = 1\n{}", self.text))
            .map(|(topology, _)| topology)
    }
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}
