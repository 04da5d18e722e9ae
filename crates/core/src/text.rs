//! Cutting text that people wrote to a length that stores accept.

/// The longest error text that is kept, in bytes.
pub const ERROR_BYTES_MAX: usize = 8_192;

/// What a cut text ends with.
pub const CUT_MARK: &str = "...(truncated)";

/// At most `bytes_max` bytes of the text, cut on a character boundary and marked as cut.
#[must_use]
pub fn cut(text: &str, bytes_max: usize) -> String {
    // NUL is legal in Rust text but no store or terminal agrees on it.
    let clean = if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text.to_owned() };
    if clean.len() <= bytes_max {
        return clean;
    }
    let keep = clean.floor_char_boundary(bytes_max.saturating_sub(CUT_MARK.len()));
    format!("{}{CUT_MARK}", &clean[..keep])
}

/// An error text as it is stored: at most [`ERROR_BYTES_MAX`] bytes.
#[must_use]
pub fn error_text(text: &str) -> String {
    cut(text, ERROR_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_never_splits_a_character() {
        let text = "é".repeat(100);
        for max in CUT_MARK.len()..120 {
            let short = cut(&text, max);
            assert!(short.len() <= max && short.ends_with(CUT_MARK), "{max}: {short}");
        }
        assert_eq!(cut("short", 100), "short");
        assert_eq!(error_text(&"x".repeat(9_000)).len(), ERROR_BYTES_MAX);
    }

    #[test]
    fn a_nul_is_replaced() {
        assert_eq!(cut("a\0b", 100), "a\u{fffd}b");
    }
}
