//! Whatever a file holds, it loads or is refused with places that exist; nothing panics.

#![allow(clippy::unwrap_used, reason = "what a test cannot unwrap has failed it")]

use poolwright_core::Chance;
use poolwright_registry::Topology;

/// The preset without its comments and its columns: nothing in them can go wrong, and there are many of them.
fn preset() -> String {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../queues.toml")).unwrap();
    let bare = |line: &str| {
        let line = if line.starts_with('#') { "" } else { line.split(" #").next().unwrap_or("") };
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    text.lines().map(bare).filter(|line| !line.is_empty()).map(|line| line + "\n").collect()
}

/// Loads the text; whatever is wrong with it must be somewhere in it, and must be fit to be shown.
fn survive(text: &str, render: bool) -> bool {
    let Err(error) = Topology::parse("queues.toml", text) else { return true };
    assert!(!error.problems().is_empty(), "refused without a reason:\n{text}");
    let lines: Vec<&str> = text.split('\n').collect();
    for problem in error.problems() {
        let line = lines.get(problem.line - 1).unwrap_or_else(|| panic!("no line for {problem}:\n{text}"));
        assert!((1..=line.chars().count() + 1).contains(&problem.column), "no column for {problem}:\n{text}");
        assert!(!problem.message.is_empty() && !problem.message.contains('\n'), "{problem}");
    }
    if render {
        assert!(error.to_string().contains(&error.problems()[0].message));
    }
    false
}

#[test]
fn every_prefix_of_the_preset_loads_or_is_refused() {
    let text = preset();
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let loaded = ends.iter().filter(|end| survive(&text[..**end], **end % 97 == 0)).count();
    assert!(loaded > 0, "the whole preset loads");
    assert!(ends.len() > 5_000);
}

#[test]
fn every_deletion_of_a_line_loads_or_is_refused() {
    let text = preset();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for without in 0..lines.len() {
        let rest: String =
            lines.iter().enumerate().filter(|(n, _)| *n != without).map(|(_, line)| *line).collect();
        survive(&rest, true);
    }
}

#[test]
fn random_edits_load_or_are_refused() {
    const PIECES: [&str; 24] = [
        "",
        "\"",
        "'''",
        "\"\"\"",
        "[",
        "]]",
        "{",
        "}",
        "=",
        "#",
        "\n",
        "\r\n",
        "é",
        "\u{0}",
        "\u{feff}",
        "\\",
        "\\u00",
        "0x",
        "nan",
        "-",
        "[[pools]]\n",
        "a.b.c = 1\n",
        "99999999999999999999",
        "\u{1b}[31m",
    ];
    let text = preset();
    let chance = Chance::seeded(42);
    let below = |n: usize| usize::try_from(chance.next() % n as u64).unwrap();
    for round in 0..600 {
        let mut edited = text.clone();
        for _ in 0..=below(3) {
            let start = edited.floor_char_boundary(below(edited.len()));
            let end = edited.ceil_char_boundary((start + below(12)).min(edited.len()));
            edited.replace_range(start..end, PIECES[below(PIECES.len())]);
        }
        survive(&edited, round % 10 == 0);
    }
}

#[test]
fn hostile_files_are_refused_in_good_time() {
    let deep = "[".repeat(20_000);
    let keys = format!("{}b = 1", "a.".repeat(20_000));
    for text in [
        format!("x = {deep}"),
        deep,
        keys,
        "x = {".repeat(5_000),
        "x = y\n".repeat(5_000),
        "x\n".repeat(5_000),
        "[[x]]\n".repeat(5_000),
        "\u{0}".repeat(1_000),
        "\"".repeat(1_001),
        "x = \"".to_owned() + &"é".repeat(10_000),
    ] {
        assert!(!survive(&text, true));
    }
}
