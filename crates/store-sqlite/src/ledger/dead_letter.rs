//! Dead letters: recorded once for each task and attempt, listed newest first.

use bytes::Bytes;
use poolwright_core::{
    BoxError, BoxFuture, DeadLetter, DeadLetterSink, QueueName, TaskId, TaskKey, Tenant, Timestamp, Token,
    TypeName,
};
use poolwright_ledger::{
    DeadLetters, Error, Filter, LetterId, LetterPage, ListRequest, Replayed, Reply, StoredLetter,
};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::told;
use crate::SqliteStore;
use crate::error::Fault;
use crate::work::Work;

impl DeadLetterSink for SqliteStore {
    fn record<'a>(&'a self, letters: &'a [DeadLetter]) -> BoxFuture<'a, Result<(), BoxError>> {
        let letters = letters.to_vec();
        let recorded = self.write(letters.len(), move |work| {
            for letter in &letters {
                insert(work, letter)?;
            }
            Ok(())
        });
        Box::pin(async { Ok(recorded.await.map_err(told)?) })
    }
}

fn insert(work: &Work<'_>, letter: &DeadLetter) -> rusqlite::Result<()> {
    let (reach_kind, reach_id) = letter.reach();
    // The same letter may come again, by the worker that saw the error or by upkeep: the first one stays.
    let mut statement = work.conn.prepare_cached(
        "INSERT INTO dead_letters (queue, task, token, type, class, error, attempts, failed_at, tenant, reach_kind, \
         reach_id, headers, subjects, scopes, payload) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15) \
         ON CONFLICT (queue, task, token) DO NOTHING",
    )?;
    let token = letter.token.map(Token::to_bytes);
    statement
        .execute(params![
            letter.task.queue.as_str(),
            letter.task.id.as_str(),
            token.as_ref().map_or(&[][..], |bytes| &bytes[..]),
            letter.task_type.as_str(),
            letter.class.as_str(),
            &*letter.error,
            letter.attempts,
            letter.failed_at.as_micros(),
            letter.tenant.as_ref().map(|tenant| &*tenant.0),
            reach_kind,
            reach_id,
            json(&letter.headers),
            json(&letter.subjects),
            json(&letter.scopes),
            &*letter.payload,
        ])
        .map(drop)
}

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("maps and lists of text are always JSON")
}

/// The columns that [`letter`] reads, in its order.
const COLUMNS: &str = "id, queue, task, token, type, class, error, attempts, failed_at, tenant, headers, subjects, \
     scopes, replay_queue, replay_task, replayed_at, payload";

impl DeadLetters for SqliteStore {
    fn list(&self, request: ListRequest) -> Reply<'_, LetterPage> {
        let page = self.read(move |conn| page(conn, &request));
        Box::pin(async { page.await.map_err(told) })
    }

    fn letter(&self, id: LetterId) -> Reply<'_, Option<StoredLetter>> {
        let found = self.read(move |conn| {
            let mut statement =
                conn.prepare_cached(&format!("SELECT {COLUMNS} FROM dead_letters WHERE id = ?1"))?;
            let found = statement.query_row([id.0], |row| Ok(letter(row)));
            found.optional()?.transpose().map_err(|what| corrupt(&what))
        });
        Box::pin(async { found.await.map_err(told) })
    }

    fn count(&self, filter: Filter) -> Reply<'_, u64> {
        let count = self.read(move |conn| {
            let (condition, values) = condition(&filter, None);
            let sql = format!("SELECT count(*) FROM dead_letters WHERE {condition}");
            let count: i64 =
                conn.prepare_cached(&sql)?.query_row(params_from_iter(values), |row| row.get(0))?;
            Ok(u64::try_from(count).unwrap_or(0))
        });
        Box::pin(async { count.await.map_err(told) })
    }

    fn mark_replayed(&self, id: LetterId, replayed: Replayed) -> Reply<'_, ()> {
        let marked = self.write(1, move |work| {
            let mut statement = work.conn.prepare_cached(
                "UPDATE dead_letters SET replay_queue = ?2, replay_task = ?3, replayed_at = ?4 WHERE id = ?1",
            )?;
            let TaskKey { queue, id: task } = &replayed.task;
            let values = params![id.0, queue.as_str(), task.as_str(), replayed.at.as_micros()];
            Ok(statement.execute(values)? == 1)
        });
        Box::pin(async move {
            match marked.await.map_err(told)? {
                true => Ok(()),
                false => Err(Error::NoLetter(id)),
            }
        })
    }

    fn delete_letter(&self, id: LetterId) -> Reply<'_, bool> {
        let deleted = self.write(1, move |work| {
            Ok(work.conn.prepare_cached("DELETE FROM dead_letters WHERE id = ?1")?.execute([id.0])? == 1)
        });
        Box::pin(async { deleted.await.map_err(told) })
    }
}

fn page(conn: &Connection, request: &ListRequest) -> Result<LetterPage, Fault> {
    let size = request.page_size() as usize;
    let (condition, mut values) = condition(&request.filter, request.before);
    values.push(Value::from(size as i64 + 1));
    let sql = format!(
        "SELECT {COLUMNS} FROM dead_letters WHERE {condition} ORDER BY id DESC LIMIT ?{}",
        values.len()
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut page = LetterPage::default();
    while let Some(row) = rows.next()? {
        if page.letters.len() == size {
            page.next = page.letters.last().map(|last: &StoredLetter| last.id);
            break;
        }
        page.letters.push(letter(row).map_err(|what| corrupt(&what))?);
    }
    Ok(page)
}

/// The filter as a condition with numbered parameters, and their values.
fn condition(filter: &Filter, before: Option<LetterId>) -> (String, Vec<Value>) {
    let mut terms = vec!["1".to_owned()];
    let mut values = Vec::new();
    let mut equal = |column: &str, value: Option<&str>| {
        if let Some(value) = value {
            values.push(Value::from(value.to_owned()));
            terms.push(format!("{column} = ?{}", values.len()));
        }
    };
    equal("type", filter.task_type.as_deref());
    equal("reach_kind", filter.reach.as_ref().map(|(kind, _)| kind.as_str()));
    equal("reach_id", filter.reach.as_ref().map(|(_, id)| id.as_str()));
    equal("tenant", filter.tenant.as_deref());
    equal("class", filter.class.map(poolwright_core::Class::as_str));
    equal("queue", filter.queue.as_deref());
    if let Some(before) = before {
        values.push(Value::from(before.0));
        terms.push(format!("id < ?{}", values.len()));
    }
    if filter.unreplayed {
        terms.push("replayed_at IS NULL".to_owned());
    }
    (terms.join(" AND "), values)
}

fn corrupt(what: &str) -> Fault {
    Fault::Said(poolwright_broker::Error::Corrupt { what: what.to_owned() })
}

/// Reads a row of [`COLUMNS`].
fn letter(row: &Row<'_>) -> Result<StoredLetter, String> {
    let id = LetterId(row.get(0).map_err(|e| e.to_string())?);
    decode(row, id).map_err(|what| format!("dead letter {id}: {what}"))
}

fn decode(row: &Row<'_>, id: LetterId) -> Result<StoredLetter, String> {
    fn get<T: rusqlite::types::FromSql>(row: &Row<'_>, at: usize) -> Result<T, String> {
        row.get(at).map_err(|e| e.to_string())
    }
    fn parsed<T: DeserializeOwned>(row: &Row<'_>, at: usize) -> Result<T, String> {
        serde_json::from_str(&get::<String>(row, at)?).map_err(|e| e.to_string())
    }
    let key = |queue: String, task: String| -> Result<TaskKey, String> {
        let queue = QueueName::new(queue).map_err(|e| e.to_string())?;
        Ok(TaskKey::new(queue, TaskId::new(task).map_err(|e| e.to_string())?))
    };
    let token = <[u8; 16]>::try_from(get::<Vec<u8>>(row, 3)?).ok().map(Token::from_bytes);
    let letter = DeadLetter {
        task: key(get(row, 1)?, get(row, 2)?)?,
        token,
        task_type: TypeName::new(get::<String>(row, 4)?).map_err(|e| e.to_string())?,
        class: get::<String>(row, 5)?
            .parse()
            .map_err(|e: poolwright_core::class::UnknownClass| e.to_string())?,
        error: get::<String>(row, 6)?.into(),
        attempts: get(row, 7)?,
        failed_at: Timestamp::from_micros(get(row, 8)?),
        tenant: get::<Option<String>>(row, 9)?.map(|tenant| Tenant(tenant.into())),
        headers: parsed(row, 10)?,
        subjects: parsed(row, 11)?,
        scopes: parsed(row, 12)?,
        payload: Bytes::from(get::<Vec<u8>>(row, 16)?),
    };
    let replay =
        (get::<Option<String>>(row, 13)?, get::<Option<String>>(row, 14)?, get::<Option<i64>>(row, 15)?);
    let replayed = match replay {
        (Some(queue), Some(task), Some(at)) => {
            Some(Replayed { task: key(queue, task)?, at: Timestamp::from_micros(at) })
        }
        _ => None,
    };
    Ok(StoredLetter { id, letter, replayed })
}
