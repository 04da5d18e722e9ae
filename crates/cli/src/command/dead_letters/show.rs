//! `dead-letters show`: one letter, with all that the file of queues lets a person see.

use poolwright::core::Timestamp;
use poolwright::inspector::LetterView;
use poolwright::ledger::LetterId;

use crate::ago;
use crate::command::task::shown;
use crate::failure::Failure;
use crate::place::Place;
use crate::print::{Output, Paint};
use crate::table::Pairs;

pub(crate) async fn run(id: i64, place: &Place, out: &mut Output) -> Result<(), Failure> {
    place
        .look(async |open| {
            let letter = open.letters()?.show(LetterId(id)).await?;
            out.result(&letter, |paint| text(&letter, open.now(), paint))
        })
        .await
}

fn text(letter: &LetterView, now: Timestamp, paint: Paint) -> String {
    let mut pairs = Pairs::default();
    pairs.add("id", letter.id);
    pairs.add("task", format!("{}/{}", letter.queue, letter.task_id));
    pairs.add("type", &letter.task_type);
    pairs.add("failed", ago::full(now, letter.failed_at));
    pairs.add("attempts", letter.fail_count);
    pairs.add("class", letter.class);
    pairs.add("error", &letter.last_error);
    pairs.add(&letter.scope, &letter.scope_id);
    pairs.maybe("tenant", letter.tenant_id.as_ref());
    let replayed = letter.replayed.as_ref();
    pairs.maybe(
        "replayed",
        replayed.map(|replay| format!("{}/{}, {}", replay.queue, replay.task_id, ago::full(now, replay.at))),
    );
    for (name, value) in &letter.shown {
        pairs.add(name, shown(value));
    }
    pairs.render(paint)
}
