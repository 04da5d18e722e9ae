//! A table of exceptions to a rule that remembers which of them were needed, so that none outlives its reason.

use super::Finding;

/// The table and, for each entry, whether something has needed it.
pub(crate) struct Exceptions<'e, T> {
    table: &'e [T],
    needed: Vec<bool>,
}

impl<'e, T> Exceptions<'e, T> {
    pub(crate) fn new(table: &'e [T]) -> Self {
        Self { table, needed: vec![false; table.len()] }
    }

    /// Whether an entry fits; that entry is needed from now on.
    pub(crate) fn cover(&mut self, fits: impl Fn(&T) -> bool) -> bool {
        let entry = self.table.iter().position(fits);
        if let Some(entry) = entry {
            self.needed[entry] = true;
        }
        entry.is_some()
    }

    /// A finding in `table_file` for every entry that nothing needed; `describe` names the entry and its reason.
    pub(crate) fn needless(
        &self,
        table_file: &str,
        rule: &'static str,
        describe: impl Fn(&T) -> String,
    ) -> Vec<Finding> {
        let needless = self.table.iter().zip(&self.needed).filter(|(_, needed)| !**needed);
        let message = |entry| format!("nothing needs the exception {} any more: remove it", describe(entry));
        needless.map(|(entry, _)| Finding::new(table_file, 1, rule, message(entry))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_needless_until_something_fits_it() {
        let mut exceptions = Exceptions::new(&["a", "b"]);
        assert!(exceptions.cover(|entry| *entry == "b"));
        assert!(!exceptions.cover(|entry| *entry == "c"));
        let found = exceptions.needless("x.rs", "rows", |entry| format!("{entry} (why)"));
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].to_string(),
            "x.rs:1: rows: nothing needs the exception a (why) any more: remove it"
        );
    }
}
