//! A case, how it is played, and the macro that makes a test of each.

use std::fmt;
use std::panic::Location;
use std::time::Duration;

use poolwright_core::BoxFuture;

use crate::stage::{SAFETY, Stage};
use crate::{Harness, topic};

/// What a case comes to. What it expects it asserts; an error is a call that failed where none may.
pub type Outcome = Result<(), Failed>;

/// A call that failed where none may, and where in the suite that was.
#[derive(Debug)]
pub struct Failed {
    what: String,
    at: &'static Location<'static>,
}

impl<E: std::error::Error> From<E> for Failed {
    /// What `?` does with an error; it remembers the line of the `?`.
    #[track_caller]
    fn from(error: E) -> Self {
        Self { what: error.to_string(), at: Location::caller() }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: unexpected: {}", self.at, self.what)
    }
}

/// One rule of the contract, as a story that a store must play.
pub struct Case {
    /// The file it is in.
    pub topic: &'static str,
    /// The behaviour.
    pub name: &'static str,
    run: for<'h> fn(&'h dyn Harness, Duration) -> BoxFuture<'h, Outcome>,
}

impl Case {
    /// The case of this topic and name.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn named(topic: &str, name: &str) -> &'static Self {
        let mut all = CASES.iter().copied().flatten();
        let found = all.find(|case| case.topic == topic && case.name == name);
        found.unwrap_or_else(|| panic!("the suite has no case {topic}::{name}"))
    }

    /// Plays it on a fresh harness, waiting at most [`SAFETY`] for each signal.
    ///
    /// # Errors
    /// [`Failed`] where a call failed that must not.
    ///
    /// # Panics
    /// Where the store broke the rule.
    pub async fn play(&self, harness: &dyn Harness) -> Outcome {
        self.play_within(harness, SAFETY).await
    }

    /// Plays it and waits no longer than this for each signal: for those who know that it will be in vain.
    ///
    /// # Errors
    /// [`Failed`] where a call failed that must not.
    ///
    /// # Panics
    /// Where the store broke the rule.
    pub async fn play_within(&self, harness: &dyn Harness, safety: Duration) -> Outcome {
        (self.run)(harness, safety).await
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.topic, self.name)
    }
}

/// Plays a case by its name, as the tests that [`suite!`](crate::suite!) makes do.
///
/// # Panics
/// When the store breaks the rule, or when there is no such case.
pub async fn run(topic: &str, name: &str, harness: &dyn Harness) {
    let case = Case::named(topic, name);
    if let Err(failed) = case.play(harness).await {
        panic!("{case:?}: {failed}");
    }
}

#[doc(hidden)]
#[macro_export]
macro_rules! table {
    (($($list:ident)?) $($topic:ident { $($case:ident)+ })*) => {
        &[$($(
            Case {
                topic: stringify!($topic),
                name: stringify!($case),
                run: |harness, safety| Box::pin(topic::$topic::$case(Stage::new(harness, safety))),
            },
        )+)*]
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! tests {
    (($factory:ident) $($topic:ident { $($case:ident)+ })*) => {
        $(mod $topic {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let harness = super::$factory().await;
                    $crate::run(stringify!($topic), stringify!($case), &harness).await;
                }
            )+
        })*
    };
}

/// Makes a test of every case: `suite!(factory)`, or `suite!(factory; durable, poison)` with the groups that
/// the harness can stage, too.
///
/// `factory` names an `async fn() -> impl Harness` in the same module. It is called once for each case.
#[macro_export]
macro_rules! suite {
    ($factory:ident $(; $($group:ident),+ $(,)?)?) => {
        $crate::cases! { general => tests ($factory) }
        $($($crate::cases! { $group => tests ($factory) })+)?
    };
}

/// The cases for every store, and those of the other groups.
pub const CASES: &[&[Case]] = &[
    crate::cases! { general => table () },
    crate::cases! { durable => table () },
    crate::cases! { poison => table () },
];
