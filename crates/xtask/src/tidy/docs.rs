//! Every Rust file says in its first line why it exists.

use super::Finding;
use super::tree::{File, Tree};

const RULE: &str = "docs";

/// Programs that are inputs of tests stand for a user's code and follow no house rule about docs.
const INPUTS: &str = "/tests/ui/";

/// Looks at the first line of every Rust file.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let ours =
        tree.sources().map(|(file, _)| file).filter(|file| !format!("/{}", file.path).contains(INPUTS));
    let silent = ours.filter(|file| !says_its_reason(file));
    let message = "expected the file to begin with `//!` and its one reason to exist";
    silent.map(|file| Finding::new(&file.path, 1, RULE, message)).collect()
}

fn says_its_reason(file: &File) -> bool {
    let first = file.text.lines().next().unwrap_or_default();
    first.strip_prefix("//!").is_some_and(|reason| !reason.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::tree::fixture;
    use super::*;

    #[test]
    fn a_file_begins_with_its_reason() {
        assert!(check(&fixture(&[("crates/a/src/lib.rs", "//! Does a thing.\n")])).is_empty());
    }

    #[test]
    fn silence_an_empty_line_and_another_kind_of_comment_are_found() {
        for text in ["", "use a;\n", "//!\n//! Late.\n", "\n//! Late.\n", "/// Of an item.\n", "// Plain.\n"]
        {
            for path in ["crates/a/src/lib.rs", "crates/a/tests/b.rs", "tests/walk.rs"] {
                let found = check(&fixture(&[(path, text)]));
                assert!(found.len() == 1 && found[0].path == path, "{path}: {text:?}");
            }
        }
    }

    #[test]
    fn an_input_of_a_compile_test_and_other_text_are_free() {
        assert!(
            check(&fixture(&[("crates/a/tests/ui/wrong.rs", "fn main() {}"), ("a.sql", "select 1")]))
                .is_empty()
        );
    }
}
