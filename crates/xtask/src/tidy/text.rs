//! What may not be committed: tests switched off, marks of unfinished work that no issue follows, paths of one machine.

use super::Finding;
use super::exceptions::Exceptions;
use super::syntax::Source;
use super::tree::{File, Tree};

/// Marks of unfinished work; cut in two so that a search for unfinished work does not end here.
const MARKS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Top directories where machines keep checkouts and leftovers; with a slash on both sides they make a path of one
/// machine. Homes are left out: a guide may well show one.
const MACHINE_DIRS: [&str; 3] = ["work", "tmp", "root"];

/// A file that may name a machine's path, with the reason.
struct Allowance {
    file: &'static str,
    reason: &'static str,
}

/// The only place for such allowances. None so far.
const ALLOWED: &[Allowance] = &[];

/// Reads every text file.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = check_paths(tree, ALLOWED);
    for file in &tree.files {
        match &file.source {
            Some(source) => {
                ignored(file, source, &mut findings);
                let lines = source.comments().flat_map(|(first, comment)| (first..).zip(comment.lines()));
                unfinished(file, lines, &mut findings);
            }
            None => unfinished(file, (1..).zip(file.text.lines()), &mut findings),
        }
    }
    findings
}

/// `#[ignore]`, also behind `cfg_attr`, and examples in docs that are never run.
fn ignored(file: &File, source: &Source, findings: &mut Vec<Finding>) {
    let mut report = |line, message| findings.push(Finding::new(&file.path, line, "ignored", message));
    for attribute in source.attributes() {
        let words = &attribute.words;
        let behind_cfg =
            words.first() == Some(&"cfg_attr") && words.windows(2).any(|pair| pair == [",", "ignore"]);
        if words.first() == Some(&"ignore") || behind_cfg {
            report(
                attribute.line,
                "a test is run or deleted, never ignored; a long story belongs to `cargo xtask soak`",
            );
        }
    }
    for (first, comment) in source.comments() {
        for (line, text) in (first..).zip(comment.lines()) {
            let fence = text.trim_start().trim_start_matches(['/', '!', '*', ' ']).strip_prefix("```");
            if fence.is_some_and(|words| words.split(',').any(|word| word.trim() == "ignore")) {
                report(
                    line,
                    "an example in docs is compiled: use `no_run`, or `text` for what is no program",
                );
            }
        }
    }
}

/// A mark of unfinished work carries the number of the issue that will finish it.
fn unfinished<'t>(file: &File, lines: impl Iterator<Item = (usize, &'t str)>, findings: &mut Vec<Finding>) {
    for (line, text) in lines {
        if MARKS.iter().any(|mark| has_open_mark(text, mark)) {
            let message = format!("expected the issue that will finish this, as in {}(#12)", MARKS[0]);
            findings.push(Finding::new(&file.path, line, "unfinished", message));
        }
    }
}

/// Whether `mark` stands in `text` as a word of its own, outside backticks and without an issue number.
fn has_open_mark(text: &str, mark: &str) -> bool {
    let in_word = |c: char| c == '_' || c.is_alphanumeric();
    text.match_indices(mark).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + mark.len()..]);
        let word = !before.ends_with(in_word) && !after.starts_with(in_word);
        let quoted = before.ends_with('`');
        word && !quoted && !(mark == MARKS[0] && has_issue(after))
    })
}

/// `(#12)`
fn has_issue(after: &str) -> bool {
    let number = after.strip_prefix("(#").and_then(|rest| rest.split_once(')')).map(|(number, _)| number);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn check_paths(tree: &Tree, allowed: &[Allowance]) -> Vec<Finding> {
    const RULE: &str = "machine-path";
    let mut findings = Vec::new();
    let mut exceptions = Exceptions::new(allowed);
    for file in &tree.files {
        for (line, text) in (1..).zip(file.text.lines()) {
            let Some(path) = machine_path(text) else { continue };
            if !exceptions.cover(|allowance| allowance.file == file.path) {
                let message =
                    format!("{path}… is a path of one machine: use a relative one or a temporary directory");
                findings.push(Finding::new(&file.path, line, RULE, message));
            }
        }
    }
    let describe = |allowance: &Allowance| format!("of {} ({})", allowance.file, allowance.reason);
    findings.extend(exceptions.needless(file!(), RULE, describe));
    findings
}

/// The first absolute path of a machine in a line. The same letters inside a longer path are none, except behind the
/// empty host of a URL.
fn machine_path(text: &str) -> Option<String> {
    let continues = |before: &str| {
        let inside = |c: char| c.is_alphanumeric() || "_-.}*~/)$".contains(c);
        before.ends_with(inside) && !before.ends_with("://")
    };
    let paths = MACHINE_DIRS.iter().map(|dir| format!("/{dir}/"));
    paths.into_iter().find(|path| text.match_indices(path.as_str()).any(|(at, _)| !continues(&text[..at])))
}

#[cfg(test)]
mod tests {
    use super::super::tree::fixture;
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        check(&fixture(&[(path, text)]))
            .iter()
            .map(|finding| format!("{}:{}", finding.line, finding.rule))
            .collect()
    }

    #[test]
    fn an_ignored_test_is_found() {
        assert_eq!(findings("a.rs", "#[test]\n#[ignore]\nfn f() {}"), ["2:ignored"]);
        assert_eq!(findings("a.rs", "#[ignore = \"slow\"]\nfn f() {}"), ["1:ignored"]);
        assert_eq!(findings("a.rs", "#[cfg_attr(windows, ignore)]\nfn f() {}"), ["1:ignored"]);
        assert!(findings("a.rs", "// #[ignore]\n#[arg(ignore)]\nfn f() { g(\"#[ignore]\") }").is_empty());
    }

    #[test]
    fn an_ignored_example_is_found() {
        assert_eq!(findings("a.rs", "/// A.\n/// ```ignore\n/// x\n/// ```\nfn f() {}"), ["2:ignored"]);
        assert_eq!(findings("a.rs", "//! ```rust, ignore"), ["1:ignored"]);
        assert!(findings("a.rs", "/// ```no_run\n/// ignore\n/// ```\nfn f() {}").is_empty());
    }

    #[test]
    fn unfinished_work_needs_an_issue() {
        for mark in MARKS {
            assert_eq!(findings("a.rs", &format!("// x\n/* y\n {mark}: z */")), ["3:unfinished"], "{mark}");
            assert_eq!(findings("a.sql", &format!("-- {mark} z")), ["1:unfinished"], "{mark}");
            assert_eq!(findings("a.md", &format!("{mark}(soon)")), ["1:unfinished"], "{mark}");
            assert!(
                findings("a.md", &format!("a `{mark}` or {mark}S, {}", mark.to_lowercase())).is_empty(),
                "{mark}"
            );
            assert!(findings("a.rs", &format!("let x = \"{mark}\";")).is_empty(), "{mark}");
        }
        let todo = MARKS[0];
        assert!(findings("a.rs", &format!("// {todo}(#12): z")).is_empty());
        assert_eq!(findings("a.rs", &format!("// {todo}(#): z")), ["1:unfinished"]);
        assert_eq!(findings("a.rs", &format!("// {todo}(#12): z, {todo}: y")), ["1:unfinished"]);
    }

    #[test]
    fn a_machines_path_is_found_wherever_it_stands() {
        for dir in MACHINE_DIRS {
            let path = format!("/{dir}/x");
            for text in
                [path.clone(), format!("a \"{path}\""), format!("({path})"), format!("sqlite://{path}")]
            {
                assert_eq!(findings("a.md", &text), ["1:machine-path"], "{text}");
                assert_eq!(findings("a.rs", &format!("\n// {text}")), ["2:machine-path"], "{text}");
            }
        }
    }

    #[test]
    fn the_same_letters_in_a_longer_path_are_no_machines_path() {
        let [work, tmp, ..] = MACHINE_DIRS;
        for text in [
            format!("crates/{work}/x"),
            format!("./{tmp}/x"),
            format!("$DIR/{tmp}/x"),
            format!("${{DIR}}/{tmp}/x"),
            format!("https://host/{work}/x"),
            format!("/{work}s/x"),
            format!("either/{work}/or"),
        ] {
            assert!(findings("a.md", &text).is_empty(), "{text}");
        }
    }

    #[test]
    fn an_allowance_is_for_one_file_and_missed_when_needless() {
        let path = format!("/{}/x", MACHINE_DIRS[1]);
        let tree = fixture(&[("a.md", &path), ("b.md", "")]);
        let allowed = |file| [Allowance { file, reason: "an example" }];
        assert!(check_paths(&tree, &allowed("a.md")).is_empty());
        let found = check_paths(&tree, &allowed("b.md"));
        assert!(found.len() == 2 && found[1].message.contains("of b.md (an example)"), "{found:?}");
    }
}
