//! `check`: what is wrong with the file of queues, or each value in force and where it came from.

use std::io::{self, Write as _};

use poolwright::Topology;
use poolwright::core::settings::NoSettings;
use poolwright::registry::{Error as RegistryError, Origin, Problem, Row, Warning, report};
use serde::Serialize;

use crate::failure::Failure;
use crate::place::Place;
use crate::print::{self, Output, Paint, Tone};
use crate::table::{Cell, Table};

#[derive(Serialize)]
struct Checked<'a> {
    /// The file, or the built-in preset.
    file: String,
    rows: &'a [Row],
    warnings: &'a [Warning],
    problems: &'a [Problem],
    types_without_handler: Vec<&'a str>,
}

pub(crate) async fn run(place: &Place, out: &mut Output) -> Result<(), Failure> {
    place.say_preset();
    let found = match place.read(&NoSettings) {
        Err(Failure::Mistakes(error)) => return mistakes(place, &error, out),
        found => found?,
    };
    let settings = place.settings().await?;
    let (topology, warnings) = if settings.is_empty() { found } else { place.read(&settings)? };
    let rows = report(&topology);
    let types_without_handler = without_handler(&topology);
    let file = topology.name().to_owned();
    let checked = Checked { file, rows, warnings: &warnings, problems: &[], types_without_handler };
    out.result(&checked, |paint| text(rows, paint))?;
    say(&topology, &warnings, &checked.types_without_handler);
    Ok(())
}

fn mistakes(place: &Place, error: &RegistryError, out: &mut Output) -> Result<(), Failure> {
    if out.is_json() {
        let file = place.file().map_or_else(String::new, |path| path.display().to_string());
        let problems = error.problems();
        let checked = Checked { file, rows: &[], warnings: &[], problems, types_without_handler: Vec::new() };
        out.result(&checked, |_| String::new())?;
    } else {
        let text = if print::is_coloured(&io::stderr()) { error.coloured() } else { error.to_string() };
        // Where nobody listens, the exit code says it.
        let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
    }
    Err(Failure::Told)
}

/// What stands beside the values.
fn say(topology: &Topology, warnings: &[Warning], types_without_handler: &[&str]) {
    warnings.iter().for_each(print::warning);
    if !types_without_handler.is_empty() {
        print::note(format!(
            "this program, whose handlers are those of the demo, has none for {} of {} task types: {}",
            types_without_handler.len(),
            topology.types().len(),
            types_without_handler.join(", ")
        ));
    }
    print::note(format!(
        "{} holds: {} pools, {} queues, {} task types",
        topology.name(),
        topology.pools().len(),
        topology.queues().len(),
        topology.types().len()
    ));
}

fn without_handler(topology: &Topology) -> Vec<&str> {
    let handled = poolwright_demo::handled_types();
    topology.types().iter().map(|rules| rules.name.as_str()).filter(|name| !handled.contains(name)).collect()
}

/// The value comes last: it may be long, and nothing has to stand behind it.
fn text(rows: &[Row], paint: Paint) -> String {
    let mut table = Table::new(&["KEY", "FROM", "VALUE"]);
    for row in rows {
        let tone = match row.origin {
            Origin::Settings(_) | Origin::Env(_) => Tone::Notice,
            Origin::Default => Tone::Faint,
            Origin::File { .. } => Tone::Plain,
        };
        table.row([Cell::from(&row.path), Cell::of(&row.origin).tone(tone), Cell::from(&row.value)]);
    }
    table.render(paint)
}
