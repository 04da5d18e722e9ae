//! What the compiler says to a handler or payload that cannot be: the messages are part of the interface.
//!
//! How the compiler frames them changes with its version: after an upgrade, `TRYBUILD=overwrite cargo test -p
//! poolwright-handler --test ui` writes them anew, to be read in the diff. The count of payloads is found out too late
//! for this test, which only checks programs; its cases are examples of `Arguments::NAMES`.

#[test]
fn a_mistake_is_told_in_words_that_help() {
    trybuild::TestCases::new().compile_fail("tests/ui/wrong_*.rs");
}
