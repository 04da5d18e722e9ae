//! Files that fit in the head, functions that fit on the screen.

use super::Finding;
use super::tree::Tree;

const RULE: &str = "length";

/// Lines of a file, tests included.
const FILE_LINES_MAX: usize = 500;
/// Lines of a function, signature and braces included.
const FUNCTION_LINES_MAX: usize = 70;

/// Measures every Rust file and every function in it.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in tree.sources() {
        let lines = file.text.lines().count();
        if lines > FILE_LINES_MAX {
            let message = format!("expected at most {FILE_LINES_MAX} lines in a file, found {lines}");
            findings.push(Finding::new(&file.path, FILE_LINES_MAX + 1, RULE, message));
        }
        for function in source.functions().iter().filter(|function| function.lines > FUNCTION_LINES_MAX) {
            let (name, lines) = (function.name, function.lines);
            let message = format!(
                "expected at most {FUNCTION_LINES_MAX} lines in a function, found {lines} in `{name}`"
            );
            findings.push(Finding::new(&file.path, function.line, RULE, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::tree::fixture;
    use super::*;

    fn findings(text: &str) -> Vec<String> {
        check(&fixture(&[("a.rs", text), ("a.md", &"\n".repeat(900))]))
            .iter()
            .map(Finding::to_string)
            .collect()
    }

    /// A function of so many lines.
    fn function(lines: usize) -> String {
        format!("fn f(\n) {{\n{}}}\n", "    g();\n".repeat(lines - 3))
    }

    #[test]
    fn five_hundred_lines_are_a_file_and_one_more_is_not() {
        assert!(findings(&"//\n".repeat(500)).is_empty());
        assert_eq!(
            findings(&"//\n".repeat(501)),
            ["a.rs:501: length: expected at most 500 lines in a file, found 501"]
        );
    }

    #[test]
    fn seventy_lines_are_a_function_and_one_more_is_not() {
        assert!(findings(&function(70)).is_empty());
        let found = findings(&format!("//! A.\n\n{}", function(71)));
        assert_eq!(found, ["a.rs:3: length: expected at most 70 lines in a function, found 71 in `f`"]);
    }
}
