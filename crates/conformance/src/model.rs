//! Random steps on two stores side by side: every answer and everything that can be seen must agree.
//!
//! The steps follow from the seed, from little else, and from nothing random in the stores: a run that failed fails again
//! with its seed. Few ids, locks and subjects are used, so that tasks meet all the time.
//!
//! Invariant: what the contract leaves open is not compared (the value of tokens, the order of tasks that were claimed
//! together, who comes first of two queues); everything else is.

mod dice;
mod side;
mod step;
mod view;

use crate::Harness;
use crate::observe::text_differences;

use dice::Dice;
use side::Side;
use step::Step;
use view::View;

/// Plays `steps` random steps on both stores, which must be empty and show the same time.
///
/// # Panics
/// When they do not agree, with the seed and the story so far: the last step is the one that parted them.
pub async fn run(seed: u64, steps: usize, left: &dyn Harness, right: &dyn Harness) {
    assert_eq!(left.now(), right.now(), "the two stores of a model test begin at the same time");
    let whole_seconds = left.precision().max(right.precision()).as_secs() > 0;
    let mut dice = Dice::new(seed, whole_seconds);
    let (mut left, mut right) = (Side::new(left), Side::new(right));
    let mut story = Vec::with_capacity(steps);
    for at in 0..steps {
        let step = Step::roll(&mut dice, &left);
        story.push(format!("{at:4} {step}"));
        let (said_left, said_right) = (left.play(&step).await, right.play(&step).await);
        if let Some(text) = text_differences(&said_left, &said_right) {
            part(seed, &story, "the answers differ", &text);
        }
        let (seen_left, seen_right) = (View::of(&mut left).await, View::of(&mut right).await);
        if let Some((part_of, text)) = seen_left.differences(&seen_right) {
            part(seed, &story, &format!("the two do not show the same {part_of}"), &text);
        }
    }
}

/// Ends a run whose stores have parted.
fn part(seed: u64, story: &[String], what: &str, text: &str) -> ! {
    panic!(
        "model test with seed {seed}, step {} of the story: {what}\n{text}\nthe story:\n{}",
        story.len() - 1,
        story.join("\n")
    );
}
