//! `dead-letters delete`: removes letters; the failed tasks stay in the archive.

use poolwright::ledger::LetterId;
use serde::Serialize;

use crate::failure::Failure;
use crate::place::Place;
use crate::print::{self, Output};

#[derive(Serialize, Default)]
struct Report {
    deleted: Vec<LetterId>,
    /// Those that were not there.
    missing: Vec<LetterId>,
}

pub(crate) async fn run(ids: &[i64], place: &Place, out: &mut Output) -> Result<(), Failure> {
    place
        .look(async |open| {
            let letters = open.letters()?;
            let mut report = Report::default();
            for id in ids.iter().copied().map(LetterId) {
                match letters.delete(id).await? {
                    true => report.deleted.push(id),
                    false => report.missing.push(id),
                }
            }
            out.result(&report, |_| {
                report.deleted.iter().map(|id| format!("dead letter {id} is deleted\n")).collect()
            })?;
            report.missing.iter().for_each(|id| print::warning(format!("there is no dead letter {id}")));
            if report.missing.is_empty() { Ok(()) } else { Err(Failure::Told) }
        })
        .await
}
