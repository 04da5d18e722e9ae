//! `dead-letters replay`: enqueues the work of letters again, those that are named or all that match.

use poolwright::broker::Enqueued;
use poolwright::inspector::{Error as InspectorError, Letters};
use poolwright::ledger::LetterId;
use serde::Serialize;

use crate::args::Replay;
use crate::command::acted::queue_name;
use crate::failure::Failure;
use crate::place::{Open, Place};
use crate::print::{self, Output};

/// What came of it; letters that are in neither list were replayed.
#[derive(Serialize, Default)]
struct Report {
    replayed: u64,
    /// The new tasks; only when letters were named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tasks: Vec<Again>,
    refused: Vec<Refusal>,
}

#[derive(Serialize)]
struct Again {
    letter: LetterId,
    id: String,
    queue: String,
}

#[derive(Serialize)]
struct Refusal {
    letter: LetterId,
    error: String,
}

pub(crate) async fn run(replay: Replay, place: &Place, out: &mut Output) -> Result<(), Failure> {
    place
        .look(async |open| {
            let letters = open.letters()?;
            let report = match replay.all {
                true => all(replay, open, &letters).await?,
                false => named(&replay, open, &letters).await,
            };
            out.result(&report, |_| text(&report))?;
            for refusal in &report.refused {
                print::warning(format!("dead letter {} was not replayed: {}", refusal.letter, refusal.error));
            }
            if report.refused.is_empty() { Ok(()) } else { Err(Failure::Told) }
        })
        .await
}

async fn all(replay: Replay, open: &Open, letters: &Letters) -> Result<Report, Failure> {
    let filter = super::filter(replay.filter, open, letters).await?;
    let done = letters.replay_all(filter).await?;
    let refused =
        done.refused.into_iter().map(|(letter, error)| Refusal { letter, error: error.to_string() });
    Ok(Report { replayed: done.replayed, refused: refused.collect(), ..Report::default() })
}

async fn named(replay: &Replay, open: &Open, letters: &Letters) -> Report {
    let mut report = Report::default();
    for letter in replay.ids.iter().copied().map(LetterId) {
        let outcome = match replay.again {
            true => letters.replay_again(letter).await,
            false => letters.replay(letter).await,
        };
        match outcome {
            Ok(Enqueued { key, .. }) => {
                report.replayed += 1;
                let queue = queue_name(open, key.queue.as_str());
                report.tasks.push(Again { letter, id: key.id.to_string(), queue });
            }
            Err(error) => report.refused.push(Refusal { letter, error: cure(&error) }),
        }
    }
    report
}

fn cure(error: &InspectorError) -> String {
    match error {
        InspectorError::Replayed { .. } => format!("{error}; --again insists"),
        other => other.to_string(),
    }
}

fn text(report: &Report) -> String {
    let mut text = String::new();
    for task in &report.tasks {
        text.push_str(&format!("dead letter {} goes on as {}/{}\n", task.letter, task.queue, task.id));
    }
    match report.replayed {
        _ if !report.tasks.is_empty() => {}
        0 => text.push_str("nothing was replayed\n"),
        1 => text.push_str("1 dead letter goes on\n"),
        many => text.push_str(&format!("{many} dead letters go on\n")),
    }
    text
}
