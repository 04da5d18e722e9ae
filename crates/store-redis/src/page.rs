//! Pages, and the cursors between them.
//!
//! The lists of asynq know no places, so the cursor of a list remembers what came next and what was shown last, and goes on
//! there; see `page_list.lua`. The sets are ordered by a time, and their cursor is a place: score and id.

use poolwright_broker::{Cursor, Error, Page, PageRequest};
use poolwright_core::State;
use serde::{Deserialize, Serialize};

use crate::RedisStore;
use crate::keys::Keys;
use crate::link::Kind;
use crate::script::{Call, PAGE_LIST, PAGE_SET};

/// The largest page.
const PAGE_MAX: u32 = 1_000;

/// How many of the ids that were shown last a cursor remembers.
const SHOWN_MAX: usize = 24;

#[derive(Debug, Serialize, Deserialize, PartialEq)]
struct Place {
    queue: String,
    state: State,
    at: At,
}

#[derive(Debug, Serialize, Deserialize, PartialEq)]
enum At {
    List { left: i64, next: Vec<String>, shown: Vec<String> },
    Set { score: String, id: String },
}

impl RedisStore {
    pub(crate) async fn page_of(&self, request: PageRequest) -> Result<Page, Error> {
        let place = request.after.as_ref().map(|cursor| read(cursor, &request)).transpose()?;
        match request.state {
            State::Pending | State::Active => self.page_of_list(&request, place).await,
            _ => self.page_of_set(&request, place).await,
        }
    }

    fn page_call(&self, script: &'static crate::script::Script, request: &PageRequest) -> Call {
        let keys = Keys::of(&request.queue);
        let mut call = self.call(script);
        call.key(keys.list(request.state)).arg(keys.prefix().to_owned()).arg(request.state.as_str());
        call.number(request.limit.clamp(1, PAGE_MAX));
        call
    }

    async fn page_of_list(&self, request: &PageRequest, place: Option<At>) -> Result<Page, Error> {
        let mut call = self.page_call(&PAGE_LIST, request);
        match &place {
            Some(At::List { left, next, shown }) => {
                call.number(*left).number(i128::try_from(next.len()).unwrap_or(0));
                for id in next.iter().chain(shown) {
                    call.arg(id.clone());
                }
            }
            _ => drop(call.arg("").number(0)),
        }
        let mut parts = self.run(call, Kind::Read).await?;
        let tasks = self.records(&request.queue, parts.list()?).await?;
        let mut ahead = parts.list()?;
        let left = parts.number()?;
        let mut next = Vec::with_capacity(ahead.len());
        while ahead.len() > 0 {
            next.push(ahead.text()?);
        }
        if next.is_empty() {
            return Ok(Page { tasks, next: None });
        }
        let shown = tasks.iter().rev().take(SHOWN_MAX).map(|task| task.key.id.as_str().to_owned()).collect();
        let next = write(request, At::List { left, next, shown });
        Ok(Page { tasks, next: Some(next) })
    }

    async fn page_of_set(&self, request: &PageRequest, place: Option<At>) -> Result<Page, Error> {
        let backwards = matches!(request.state, State::Archived | State::Completed);
        let mut call = self.page_call(&PAGE_SET, request);
        call.flag(backwards);
        match place {
            Some(At::Set { score, id }) => drop(call.arg(score).arg(id)),
            _ => drop(call.arg("").arg("")),
        }
        let mut parts = self.run(call, Kind::Read).await?;
        let tasks = self.records(&request.queue, parts.list()?).await?;
        let (score, id) = (parts.text()?, parts.text()?);
        let next = (!score.is_empty()).then(|| write(request, At::Set { score, id }));
        Ok(Page { tasks, next })
    }
}

fn write(request: &PageRequest, at: At) -> Cursor {
    let place = Place { queue: request.queue.as_str().to_owned(), state: request.state, at };
    Cursor(serde_json::to_string(&place).expect("a place is made of texts and numbers"))
}

fn read(cursor: &Cursor, request: &PageRequest) -> Result<At, Error> {
    let bad = || Error::BadCursor { given: cursor.0.clone() };
    let place: Place = serde_json::from_str(&cursor.0).map_err(|_| bad())?;
    let is_list = matches!(request.state, State::Pending | State::Active);
    let fits = place.queue == request.queue.as_str()
        && place.state == request.state
        && is_list == matches!(place.at, At::List { .. });
    // A score goes to the server as it is.
    let is_number = !matches!(&place.at, At::Set { score, .. } if score.parse::<f64>().is_err());
    if fits && is_number { Ok(place.at) } else { Err(bad()) }
}
