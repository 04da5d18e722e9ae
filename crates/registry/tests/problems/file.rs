//! The file as a whole: its version, its syntax, its bytes.

use poolwright_registry::{Error, Topology};

use super::{BASE, check, check_after_base};

#[test]
fn the_base_has_none() {
    check(BASE, &[]);
    check(&format!("\u{feff}{}", BASE.replace('\n', "\r\n")), &[]);
}

#[test]
fn a_file_says_its_version_and_has_a_pool() {
    check(
        "",
        &["1:1: missing `version` at the top of the file", "1:1: missing `pools` at the top of the file"],
    );
    check("version = 1\n[pools]\n", &["2:2: there is no pool"]);
    check("version = 2\nwhatever = 3\n", &["1:11: unknown version `2`, this release reads version 1"]);
    check("version = -1\n", &["1:11: unknown version `-1`, this release reads version 1"]);
    let text = BASE.replace("version = 1", "version = \"1\"");
    check(&text, &["1:11: expected the version 1 for `version`, found the text `1`"]);
    check(&BASE.replace("version = 1\n", ""), &["1:1: missing `version` at the top of the file"]);
}

#[test]
fn mistakes_of_syntax_and_of_sense_are_told_together() {
    check(
        "version = 1\n[pools.core]\nworkers = 8x\nlable = \"x\"\nqueues = { default = 1\n\
         [tasks.t]\nqueue = \"mail\"\ntimeout = \"5\"\n",
        &[
            "3:11: `8x` is no value; text stands in quotes",
            "4:1: unknown key `lable`, did you mean `label`?",
            "6:1: missing key for inline table element, expected `,`",
            "8:11: `5` is no duration: the number 5 has no unit",
        ],
    );
    check_after_base(
        "[pools.core]\nworkers = 9\n",
        &["5:8: `core` stands twice in its table", "6:1: `workers` stands twice in its table"],
    );
}

#[test]
fn a_file_that_is_no_text_or_not_there_is_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("queues.toml");
    assert!(matches!(Topology::load(&path), Err(Error::Read { .. })));
    std::fs::write(&path, b"version = 1\n\xff\xfe\n").unwrap();
    let error = Topology::load(&path).unwrap_err();
    assert_eq!(error.problems()[0].to_string(), "2:1: this is no UTF-8 text");
    std::fs::write(&path, vec![b'#'; 1024 * 1024 + 1]).unwrap();
    assert!(Topology::load(&path).unwrap_err().to_string().contains("larger than 1 MiB"));
    std::fs::write(&path, BASE).unwrap();
    assert_eq!(Topology::load(&path).unwrap().0.pools().len(), 1);
}
