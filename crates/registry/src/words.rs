//! The closed vocabularies of the file: each word, what it means, and the value it stands for.

use poolwright_core::{OnCancel, OnConflict};
use serde::Serialize;

/// A word that the file may hold, and its meaning.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Word {
    pub(crate) text: &'static str,
    pub(crate) doc: &'static str,
}

/// A value that the file spells as one of a few words.
pub(crate) trait Vocabulary: Sized {
    const WORDS: &'static [Word];
    fn from_word(word: &str) -> Option<Self>;
}

macro_rules! words {
    ($(#[$doc:meta])* $visible:vis enum $type:ident {
        $(#[default])? $($(#[doc = $meaning:literal])+ $variant:ident = $word:literal,)+
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
        #[serde(rename_all = "snake_case")]
        $visible enum $type { $($(#[doc = $meaning])+ $variant,)+ }

        impl $type {
            /// Its word in the file.
            #[must_use]
            $visible const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl Vocabulary for $type {
            const WORDS: &'static [Word] = &[$(Word { text: $word, doc: concat!($($meaning),+) },)+];
            fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// When an elastic pool takes from the queues it borrows.
    pub enum Borrow {
        /// Whenever it has a free worker.
        Always = "always",
        /// Only while no worker of the queue's home pool is free; when that is unknown, as well.
        WhenHomeIsFull = "when_home_is_full",
    }
}

words! {
    /// Who enqueues into a queue, which decides how cancels and probes search it.
    pub enum Producers {
        /// Other programs too (asynq clients): searches also scan the queue, in chunks.
        Any = "any",
        /// Only Poolwright clients: the subject index alone is complete.
        Poolwright = "poolwright",
    }
}

words! {
    /// What the application's records learn when a task of the type has failed for good.
    pub enum OnExhausted {
        /// Nothing: the dead letter is all.
        Nothing = "nothing",
        /// The task's subjects are marked as failed.
        FailSubject = "fail_subject",
        /// The task's subjects are marked as failed where they are still being deleted.
        FailDeletingSubjects = "fail_deleting_subjects",
    }
}

words! {
    /// By what a cancel reaches a type.
    pub(crate) enum CancelBy {
        /// A cancel of one of its subjects (one document).
        Subject = "subject",
        /// A cancel of one of its scopes (a knowledge base).
        Scope = "scope",
    }
}

words! {
    /// The kinds of retry policies.
    pub(crate) enum RetryKind {
        /// asynq's own: `n^4 + 15 + random(0..=29) * (n + 1)` seconds.
        Asynq = "asynq",
        /// `base * factor^n`, at most `max`, spread by `± jitter`.
        Exponential = "exponential",
        /// `step * (n + 1)`, at most `max`.
        Linear = "linear",
        /// The listed delays one after another; the last one for all later retries.
        Steps = "steps",
        /// Always the same delay.
        Fixed = "fixed",
    }
}

impl Vocabulary for OnCancel {
    const WORDS: &'static [Word] = &[
        Word { text: "discard", doc: " The task is gone, with no dead letter." },
        Word { text: "retry", doc: " A failure like any other, as in asynq." },
        Word { text: "archive", doc: " Archived, with a dead letter." },
    ];

    fn from_word(word: &str) -> Option<Self> {
        match word {
            "discard" => Some(Self::Discard),
            "retry" => Some(Self::Retry),
            "archive" => Some(Self::Archive),
            _ => None,
        }
    }
}

impl Vocabulary for OnConflict {
    const WORDS: &'static [Word] = &[
        Word { text: "reject", doc: " The enqueue is refused, whatever state the other task is in." },
        Word { text: "replace_finished", doc: " One that has ended is replaced; a live one refuses." },
        Word {
            text: "run_again",
            doc: " One that waits will do; one that runs is run once more; one that has ended is replaced.",
        },
    ];

    fn from_word(word: &str) -> Option<Self> {
        match word {
            "reject" => Some(Self::Reject),
            "replace_finished" => Some(Self::ReplaceFinished),
            "run_again" => Some(Self::RunAgain),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agrees<T: Vocabulary + Serialize>() {
        for word in T::WORDS {
            let value = T::from_word(word.text).unwrap();
            assert_eq!(serde_json::to_value(value).unwrap(), word.text);
        }
        assert!(T::from_word("nonsense").is_none());
    }

    #[test]
    fn the_words_of_the_file_are_the_words_of_json() {
        agrees::<Borrow>();
        agrees::<Producers>();
        agrees::<OnExhausted>();
        agrees::<CancelBy>();
        agrees::<RetryKind>();
        agrees::<OnCancel>();
        agrees::<OnConflict>();
    }
}
