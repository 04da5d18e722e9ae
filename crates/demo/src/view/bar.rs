//! Draws the pools in place: a line for each, a square for each worker, and a line about the whole.

use std::convert::Infallible;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use poolwright::Running;
use poolwright::core::clock::SystemClock;
use poolwright::core::{Clock, Timestamp};
use tokio::time::{MissedTickBehavior, interval};

use super::{text, waiting};
use crate::desk::Desk;

/// From one picture to the next.
const FRAME: Duration = Duration::from_millis(100);
/// Pictures from one question to the store to the next.
const FRAMES_A_LOOK: u32 = 5;

/// Draws until it is dropped; then the lines are taken away.
pub(super) async fn show(running: &Running, desk: &Desk, started: Timestamp) -> Infallible {
    let labels = text::labels(running.topology(), &running.status());
    let bars = Bars::new(&labels);
    let mut frames = interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut frame, mut backlog) = (0, None);
    loop {
        frames.tick().await;
        if frame % FRAMES_A_LOOK == 0 {
            backlog = waiting(running).await;
        }
        frame = frame.wrapping_add(1);
        let status = running.status();
        for ((pool, bar), label) in status.pools.iter().zip(&bars.pools).zip(&labels) {
            bar.set_message(text::pool(label, pool));
        }
        let took = SystemClock.now().since(started);
        let whole = text::whole(&status, took, backlog);
        bars.whole.set_message(format!("{whole}  {}", text::plain(&desk.at())));
    }
}

struct Bars {
    all: MultiProgress,
    pools: Vec<ProgressBar>,
    whole: ProgressBar,
}

impl Bars {
    fn new(labels: &[String]) -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{wide_msg}").expect("the template is sound");
        let line = || all.add(ProgressBar::new_spinner().with_style(style.clone()));
        let pools = labels.iter().map(|_| line()).collect();
        let whole = line();
        Self { all, pools, whole }
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        // A terminal that went away shows nothing, and nothing is lost.
        let _ = self.all.clear();
    }
}
