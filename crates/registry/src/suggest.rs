//! Finds the word that was probably meant.

/// The candidate nearest to a mistyped word, when one is near enough to be worth saying.
///
/// Near enough: at most a third of the word's letters (at least one) differ, a swap of neighbours counting once.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let most = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `, did you mean X?`, or nothing: the end of a message about an unknown word.
pub(crate) fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, candidates).map_or_else(String::new, |near| format!(", did you mean {}?", quote(near)))
}

/// The words in backquotes, separated by commas; at most twelve, then how many more there are.
pub(crate) fn list<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<&str> = words.into_iter().collect();
    let mut text = words.iter().take(12).map(|word| quote(word)).collect::<Vec<_>>().join(", ");
    if words.len() > 12 {
        text.push_str(&format!(" and {} more", words.len() - 12));
    }
    text
}

/// `WHAT: a, b, c`, or nothing when there are none: a help line that lists what is known.
pub(crate) fn known<'a>(what: &str, words: impl IntoIterator<Item = &'a str>) -> String {
    let words = list(words);
    if words.is_empty() { words } else { format!("{what}: {words}") }
}

/// A text of the file in backquotes, safe for a terminal and cut to a length that a message bears.
pub(crate) fn quote(text: &str) -> String {
    let shown: String = text.chars().take(80).flat_map(escape).collect();
    let more = if text.chars().nth(80).is_some() { "…" } else { "" };
    format!("`{shown}{more}`")
}

fn escape(c: char) -> Vec<char> {
    if c.is_control() { c.escape_default().collect() } else { vec![c] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_word_is_found_and_a_far_one_is_not() {
        let words = ["weight", "workers", "queue"];
        assert_eq!(nearest("wieght", words), Some("weight"));
        assert_eq!(nearest("Worker", words), Some("workers"));
        assert_eq!(nearest("retention", words), None);
        assert_eq!(did_you_mean("queu", words), ", did you mean `queue`?");
    }

    #[test]
    fn quoted_text_is_short_and_harmless() {
        assert_eq!(quote("a\u{1b}[31m"), "`a\\u{1b}[31m`");
        assert_eq!(quote(&"x".repeat(100)), format!("`{}…`", "x".repeat(80)));
        assert_eq!(list((0..14).map(|_| "a")), format!("{} and 2 more", ["`a`"; 12].join(", ")));
    }
}
