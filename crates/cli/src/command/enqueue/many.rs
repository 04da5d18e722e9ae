//! `enqueue --from`: a task for each line, sent in batches.
//!
//! Invariant: every line that is not blank has one outcome, and the outcomes come in the order of the lines.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use poolwright::broker::Enqueued;
use poolwright::client::Error as ClientError;
use poolwright::{Client, Topology};
use serde::Serialize;
use tokio::sync::mpsc;

use super::Taken;
use super::line::{self, Line};
use super::reader::{self, Numbered};
use crate::failure::Failure;
use crate::place::{Open, Place};
use crate::print::{self, List, Output};

/// So many tasks travel together. Fewer when fewer are there: a line of a slow pipe does not wait for others.
const BATCH: usize = 100;

/// A line holds a payload and options; these have so much room.
const OPTIONS_BYTES_MAX: usize = 1024 * 1024;

type Input = Box<dyn BufRead + Send>;

/// What became of a line.
struct Outcome {
    number: u64,
    result: Result<(String, Enqueued), Refusal>,
}

enum Refusal {
    /// The line, or what it asks for.
    Line(String),
    /// The store, which would say the same to the next line.
    Store(String),
}

#[derive(Serialize)]
struct Refused<'a> {
    line: u64,
    error: &'a str,
}

#[derive(Default)]
struct Tally {
    enqueued: u64,
    refused: u64,
    /// The line at which the store failed.
    failed_at: Option<u64>,
}

pub(crate) async fn run(from: &Path, place: &Place, out: &mut Output) -> Result<(), Failure> {
    let input = input_of(from)?;
    // Each line has its own type, so there is nothing to check before.
    place.make(|_| Ok(()), async |open| feed(input, open, out).await).await
}

async fn feed(input: Input, open: &Open, out: &mut Output) -> Result<(), Failure> {
    let client = open.client();
    let (lines, mut ready) = mpsc::channel(BATCH);
    reader::spawn(input, line_bytes_max(open.topology()), lines)
        .map_err(|why| Failure::Failed(format!("the system gives no thread: {why}")))?;
    let mut list = out.begin_list()?;
    let mut tally = Tally::default();
    let mut batch = Vec::with_capacity(BATCH);
    while tally.failed_at.is_none() && ready.recv_many(&mut batch, BATCH).await > 0 {
        for outcome in send(&client, std::mem::take(&mut batch)).await {
            tally.add(&outcome);
            show(outcome, client.topology(), &mut list, out)?;
        }
        out.flush()?;
    }
    out.end_list(list)?;
    tally.end()
}

fn input_of(from: &Path) -> Result<Input, Failure> {
    if from == "-" {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    match File::open(from) {
        Ok(file) => Ok(Box::new(BufReader::new(file))),
        Err(why) => Err(Failure::Misused(format!("{} cannot be read: {why}", from.display()))),
    }
}

fn line_bytes_max(topology: &Topology) -> usize {
    let payloads = topology.types().iter().map(|rules| rules.payload_bytes_max);
    payloads.max().unwrap_or(0).saturating_add(OPTIONS_BYTES_MAX)
}

/// Sends the lines that can be sent, and puts each outcome in its place.
async fn send(client: &Client, lines: Vec<Numbered>) -> Vec<Outcome> {
    let mut batch = client.batch();
    let mut read = Vec::with_capacity(lines.len());
    for Numbered { number, text } in lines {
        let parsed = text.and_then(|text| line::parse(&text));
        read.push((
            number,
            parsed.map(|Line { task_type, payload, options }| {
                batch.push(options.apply(client.raw(&task_type, payload)));
                task_type
            }),
        ));
    }
    let mut sent = batch.send().await.into_iter();
    let mut next = || sent.next().expect("a batch has one outcome for each request");
    let outcome = |(number, parsed): (u64, Result<String, String>)| {
        let result = match parsed {
            Ok(task_type) => next().map(|enqueued| (task_type, enqueued)).map_err(Refusal::from),
            Err(why) => Err(Refusal::Line(why)),
        };
        Outcome { number, result }
    };
    read.into_iter().map(outcome).collect()
}

/// A task on stdout; a refusal on stderr, and with JSON on stdout too.
fn show(outcome: Outcome, topology: &Topology, list: &mut List, out: &mut Output) -> Result<(), Failure> {
    let line = outcome.number;
    match outcome.result {
        Ok((task_type, enqueued)) => {
            let taken = Taken { line: Some(line), ..Taken::new(&enqueued, &task_type, topology) };
            out.element(list, &taken, || taken.text())
        }
        Err(refusal) => {
            let (Refusal::Line(error) | Refusal::Store(error)) = refusal;
            print::warning(format!("line {line} was not enqueued: {error}"));
            if out.is_json() {
                return out.element(list, &Refused { line, error: &error }, String::new);
            }
            Ok(())
        }
    }
}

impl From<ClientError> for Refusal {
    fn from(error: ClientError) -> Self {
        match &error {
            ClientError::Store(cause) if !cause.is_duplicate() => Self::Store(error.to_string()),
            _ => Self::Line(error.to_string()),
        }
    }
}

impl Tally {
    fn add(&mut self, outcome: &Outcome) {
        match &outcome.result {
            Ok(_) => self.enqueued += 1,
            Err(refusal) => {
                self.refused += 1;
                if let Refusal::Store(_) = refusal {
                    self.failed_at.get_or_insert(outcome.number);
                }
            }
        }
    }

    fn end(&self) -> Result<(), Failure> {
        let Self { enqueued, refused, failed_at } = self;
        let count = format!("{enqueued} enqueued, {refused} refused");
        match failed_at {
            Some(line) => Err(Failure::Failed(format!(
                "the store failed at line {line}, no later line was read ({count})"
            ))),
            None => {
                print::note(count);
                if *refused == 0 { Ok(()) } else { Err(Failure::Told) }
            }
        }
    }
}
