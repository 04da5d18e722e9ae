//! `history`: the last days of a queue.

use poolwright::inspector::DayView;

use crate::args::History;
use crate::failure::Failure;
use crate::place::Place;
use crate::print::{Output, Paint};
use crate::table::{Cell, Table};

pub(crate) async fn run(history: &History, place: &Place, out: &mut Output) -> Result<(), Failure> {
    place
        .look(async |open| {
            let days = open.inspector().history(&history.at.queue, history.days).await?;
            out.result(&days, |paint| text(&days, paint))
        })
        .await
}

fn text(days: &[DayView], paint: Paint) -> String {
    let mut table = Table::new(&["DAY (UTC)", "#DONE", "#FAILED"]);
    for day in days {
        table.row([Cell::from(&day.date), Cell::count(day.processed), Cell::count(day.failed)]);
    }
    table.render(paint)
}
