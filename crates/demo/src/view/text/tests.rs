//! The words as a person reads them.

use poolwright::core::PoolName;

use super::*;
use crate::id::SourceId;

fn status(busy: u32, stalled: u32) -> PoolStatus {
    let name = PoolName::new("core").expect("a name");
    PoolStatus { name, workers: 5, busy, stalled, completed: 1_234, failed: 2 }
}

fn summary() -> Summary {
    Summary {
        documents: 1_204,
        chunks: 9_000,
        images: 1,
        summaries: 1_204,
        questions: 20_000,
        terms: 400,
        wiki_pages: 1_500,
        dead_letters: 1,
        skipped: 3,
        unfinished: 0,
        new: 1_200,
        changed: 0,
        resumed: 0,
        removed: 0,
        unchanged: 6,
        tasks: 12_000,
        retries: 0,
        seconds: 83.0,
        tasks_per_second: 144.6,
        interrupted: false,
        other_tasks: 0,
        folders: vec![SourceId::from("/yard".to_owned())],
        wiki: "/home/wiki/index.md".into(),
        dead: vec![Dead {
            path: "/yard/a\u{1b}[31m.json".into(),
            task_type: "document:process".into(),
            class: "permanent".into(),
            reason: "the JSON is cut off: line 12".into(),
        }],
        left_out: vec![LeftOut {
            reason: format!("{READ}, not .exe files"),
            files: 3,
            example: "b.exe".into(),
        }],
    }
}

#[test]
fn a_pool_shows_a_square_for_each_worker() {
    assert_eq!(slots(&status(3, 1)), "■■▲□□");
    assert_eq!(slots(&status(0, 0)), "□□□□□");
    let line = pool("Core", &status(5, 0));
    assert!(line.starts_with("  Core  ■■■■■ ") && line.ends_with(" 1,234 done  2 failed"), "{line}");
}

#[test]
fn a_report_says_what_there_is_what_failed_and_where_to_go_on() {
    let expected = "\
/yard
  this run   files: 1,200 new, 6 unchanged; 12,000 tasks in 1 min 23 s, 144/s
      1,204  documents
          1  picture
      9,000  chunks
     20,000  questions
        400  terms
      1,500  wiki pages

Left out: 3 files. Markdown, text, HTML, CSV, JSON and pictures are read.
          3  .exe files, as b.exe

1 dead letter:
  /yard/a\u{fffd}[31m.json
      the JSON is cut off: line 12 (document:process)

Read    /home/wiki/index.md
Search  poolwright demo search WORDS
Retry   poolwright demo --retry-failed, after a look at poolwright dead-letters list
";
    assert_eq!(report(&summary()), expected);
}

#[test]
fn an_interrupted_run_says_how_to_go_on_and_a_calm_one_says_nothing_of_it() {
    let calm = report(&summary());
    assert!(!calm.contains("Stopped") && !calm.contains("Not finished"));
    let cut =
        report(&Summary { interrupted: true, unfinished: 1, other_tasks: 2, wiki_pages: 0, ..summary() });
    assert!(
        cut.contains("\nStopped before its end, with 1 file to go. The same command goes on.\n"),
        "{cut}"
    );
    assert!(!cut.contains("index.md"), "{cut}");
    let left = report(&Summary { unfinished: 2, ..summary() });
    assert!(left.contains("\nNot finished: 2 files. The same command goes on.\n"), "{left}");
    assert!(cut.contains("In the queues: 2 tasks of other work"), "{cut}");
}

#[test]
fn long_lists_are_cut_and_say_so() {
    let one = summary().dead[0].clone();
    let many = report(&Summary { dead: vec![one; DEAD_MAX + 2], ..summary() });
    assert!(many.contains("42 dead letters:\n") && many.contains("  … and 2 more dead letters\n"), "{many}");
}

#[test]
fn hits_are_told_with_their_place() {
    let hit = Hit {
        source: SourceId::from("/yard".to_owned()),
        path: "winch.md".into(),
        title: "Winch".into(),
        heading: "Winch › Rope".into(),
        snippet: "the **rope**\u{1b}]0; is".into(),
        score: 1.0,
    };
    assert_eq!(hits("rope", &[hit]), "/yard/winch.md\n  Winch › Rope\n    the **rope**\u{fffd}]0; is\n");
    assert_eq!(hits("oar", &[]), "Nothing holds \"oar\".\n");
}

#[test]
fn numbers_and_times_read_as_people_write_them() {
    assert_eq!([0, 999, 1_000, 1_234_567].map(number), ["0", "999", "1,000", "1,234,567"]);
    assert_eq!([0.46, 9.9, 144.6].map(speed), ["0.5", "9.9", "144"]);
    let times = [400, 12_000, 185_000].map(|ms| duration(Duration::from_millis(ms)));
    assert_eq!(times, ["0.4 s", "12 s", "3 min 05 s"]);
}
