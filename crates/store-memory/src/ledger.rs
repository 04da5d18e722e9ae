//! The ledger in memory: dead letters and settings for tests and for `memory:`.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use poolwright_core::{BoxError, BoxFuture, Clock, DeadLetter, DeadLetterSink, TaskKey, Timestamp, Token};
use poolwright_ledger::{
    DeadLetters, Error, Filter, Ledger, LetterId, LetterPage, ListRequest, Replayed, Reply, Setting,
    Settings, StoredLetter,
};

/// A ledger in memory. It keeps everything until the process ends.
///
/// ```
/// use std::sync::Arc;
/// use poolwright_core::clock::SystemClock;
/// use poolwright_store_memory::MemoryLedger;
///
/// let ledger: Arc<dyn poolwright_ledger::Ledger> = MemoryLedger::new(Arc::new(SystemClock));
/// assert_eq!(ledger.describe(), "memory");
/// ```
#[derive(Debug)]
pub struct MemoryLedger {
    clock: Arc<dyn Clock>,
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    last: i64,
    letters: BTreeMap<LetterId, StoredLetter>,
    /// What each of the letters is about: no two are about the same.
    ends: HashSet<End>,
    settings: BTreeMap<String, (String, Timestamp)>,
}

/// A task and the attempt that was its last.
type End = (TaskKey, Option<Token>);

fn end_of(letter: &DeadLetter) -> End {
    (letter.task.clone(), letter.token)
}

impl MemoryLedger {
    /// An empty ledger with this clock.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { clock, books: Mutex::default() })
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().expect("no step panics half way")
    }
}

fn ready<'a, T: Send + 'a>(answer: T) -> Reply<'a, T> {
    Box::pin(std::future::ready(Ok(answer)))
}

impl DeadLetterSink for MemoryLedger {
    fn record<'a>(&'a self, letters: &'a [DeadLetter]) -> BoxFuture<'a, Result<(), BoxError>> {
        let mut books = self.books();
        for letter in letters {
            if !books.ends.insert(end_of(letter)) {
                continue;
            }
            books.last += 1;
            let id = LetterId(books.last);
            books.letters.insert(id, StoredLetter { id, letter: letter.clone(), replayed: None });
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

fn matches(filter: &Filter, stored: &StoredLetter) -> bool {
    let letter = &stored.letter;
    let (kind, id) = letter.reach();
    filter.task_type.as_deref().is_none_or(|wanted| letter.task_type == *wanted)
        && filter.reach.as_ref().is_none_or(|wanted| (wanted.0.as_str(), wanted.1.as_str()) == (kind, id))
        && filter.tenant.as_ref().is_none_or(|wanted| letter.tenant.as_ref().is_some_and(|t| t.0 == *wanted))
        && filter.class.is_none_or(|wanted| letter.class == wanted)
        && filter.queue.as_deref().is_none_or(|wanted| letter.task.queue == *wanted)
        && !(filter.unreplayed && stored.replayed.is_some())
}

impl DeadLetters for MemoryLedger {
    fn list(&self, request: ListRequest) -> Reply<'_, LetterPage> {
        let books = self.books();
        let older = match request.before {
            Some(before) => books.letters.range(..before),
            None => books.letters.range(..),
        };
        let mut found =
            older.rev().map(|(_, stored)| stored).filter(|stored| matches(&request.filter, stored));
        let letters: Vec<StoredLetter> = found.by_ref().take(request.page_size() as usize).cloned().collect();
        let next = found.next().and(letters.last()).map(|last| last.id);
        ready(LetterPage { letters, next })
    }

    fn letter(&self, id: LetterId) -> Reply<'_, Option<StoredLetter>> {
        ready(self.books().letters.get(&id).cloned())
    }

    fn count(&self, filter: Filter) -> Reply<'_, u64> {
        ready(self.books().letters.values().filter(|stored| matches(&filter, stored)).count() as u64)
    }

    fn mark_replayed(&self, id: LetterId, replayed: Replayed) -> Reply<'_, ()> {
        let marked = match self.books().letters.get_mut(&id) {
            Some(stored) => {
                stored.replayed = Some(replayed);
                Ok(())
            }
            None => Err(Error::NoLetter(id)),
        };
        Box::pin(std::future::ready(marked))
    }

    fn delete_letter(&self, id: LetterId) -> Reply<'_, bool> {
        let mut books = self.books();
        let deleted = books.letters.remove(&id);
        if let Some(stored) = &deleted {
            books.ends.remove(&end_of(&stored.letter));
        }
        ready(deleted.is_some())
    }
}

impl Settings for MemoryLedger {
    fn settings(&self) -> Reply<'_, Vec<Setting>> {
        let books = self.books();
        let setting = |(key, (value, at)): (&String, &(String, Timestamp))| Setting {
            key: key.clone(),
            value: value.clone(),
            at: *at,
        };
        ready(books.settings.iter().map(setting).collect())
    }

    fn set(&self, key: String, value: String) -> Reply<'_, ()> {
        let set = Setting::check_key(&key);
        if set.is_ok() {
            let now = self.clock.now();
            self.books().settings.insert(key, (value, now));
        }
        Box::pin(std::future::ready(set))
    }

    fn unset(&self, key: String) -> Reply<'_, bool> {
        ready(self.books().settings.remove(&key).is_some())
    }
}

impl Ledger for MemoryLedger {
    fn describe(&self) -> String {
        "memory".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolwright_core::clock::ManualClock;
    use poolwright_core::{Class, Headers, QueueName, TaskId, TaskKey, Tenant, Token, TypeName};

    fn letter(id: &str, attempt: u8) -> DeadLetter {
        DeadLetter {
            task: TaskKey::new(QueueName::new("q").unwrap(), TaskId::new(id).unwrap()),
            token: Some(Token::from_bytes([attempt; 16])),
            task_type: TypeName::new("t").unwrap(),
            payload: b"{}".as_slice().into(),
            headers: Headers::new(),
            class: Class::Permanent,
            error: "no".into(),
            attempts: 1,
            failed_at: Timestamp::EPOCH,
            subjects: vec![],
            scopes: vec![],
            tenant: Some(Tenant("7".into())),
        }
    }

    async fn ids(ledger: &MemoryLedger, request: ListRequest) -> (Vec<i64>, Option<i64>) {
        let page = ledger.list(request).await.unwrap();
        (page.letters.iter().map(|stored| stored.id.0).collect(), page.next.map(|next| next.0))
    }

    fn ledger() -> Arc<MemoryLedger> {
        MemoryLedger::new(Arc::new(ManualClock::at(Timestamp::from_secs(5))))
    }

    #[tokio::test]
    async fn a_letter_is_kept_once_for_each_task_and_attempt() {
        let ledger = ledger();
        ledger.record(&[letter("a", 1), letter("a", 1), letter("a", 2)]).await.unwrap();
        ledger.record(&[letter("a", 2)]).await.unwrap();
        assert_eq!(ids(&ledger, ListRequest::default()).await, (vec![2, 1], None));
        assert!(ledger.delete_letter(LetterId(1)).await.unwrap());
        ledger.record(&[letter("a", 1), letter("a", 2)]).await.unwrap();
        assert_eq!(
            ids(&ledger, ListRequest::default()).await,
            (vec![3, 2], None),
            "one that is gone may come again"
        );
    }

    #[tokio::test]
    async fn pages_come_newest_first_and_end() {
        let ledger = ledger();
        ledger.record(&(1..=5).map(|n| letter("a", n)).collect::<Vec<_>>()).await.unwrap();
        let page = |before| ListRequest { before, limit: 2, ..ListRequest::default() };
        assert_eq!(ids(&ledger, page(None)).await, (vec![5, 4], Some(4)));
        assert_eq!(ids(&ledger, page(Some(LetterId(2)))).await, (vec![1], None));
        assert_eq!(ids(&ledger, page(Some(LetterId(3)))).await, (vec![2, 1], None));
    }

    #[tokio::test]
    async fn all_conditions_of_a_filter_must_hold() {
        let ledger = ledger();
        ledger.record(&[letter("a", 1), letter("b", 2)]).await.unwrap();
        let task = TaskKey::new(QueueName::new("q").unwrap(), TaskId::new("again").unwrap());
        ledger.mark_replayed(LetterId(1), Replayed { task, at: Timestamp::EPOCH }).await.unwrap();
        let both = Filter {
            task_type: Some("t".into()),
            reach: Some(("tenant".into(), "7".into())),
            tenant: Some("7".into()),
            class: Some(Class::Permanent),
            queue: Some("q".into()),
            unreplayed: false,
        };
        assert_eq!(ledger.count(both.clone()).await.unwrap(), 2);
        assert_eq!(ledger.count(Filter { unreplayed: true, ..both.clone() }).await.unwrap(), 1);
        for none in [
            Filter { task_type: Some("u".into()), ..both.clone() },
            Filter { reach: Some(("tenant".into(), "8".into())), ..both.clone() },
            Filter { tenant: Some("8".into()), ..both.clone() },
            Filter { class: Some(Class::Crashed), ..both.clone() },
            Filter { queue: Some("r".into()), ..both },
        ] {
            assert_eq!(ledger.count(none.clone()).await.unwrap(), 0, "{none:?}");
        }
    }

    #[tokio::test]
    async fn a_letter_that_is_not_there_is_not_marked() {
        let ledger = ledger();
        ledger.record(&[letter("a", 1)]).await.unwrap();
        let replayed = Replayed { task: letter("b", 1).task, at: Timestamp::EPOCH };
        ledger.mark_replayed(LetterId(1), replayed.clone()).await.unwrap();
        assert_eq!(ledger.letter(LetterId(1)).await.unwrap().unwrap().replayed, Some(replayed.clone()));
        assert!(ledger.delete_letter(LetterId(1)).await.unwrap());
        assert!(!ledger.delete_letter(LetterId(1)).await.unwrap());
        assert_eq!(ledger.mark_replayed(LetterId(1), replayed).await, Err(Error::NoLetter(LetterId(1))));
    }

    #[tokio::test]
    async fn settings_are_replaced_and_removed() {
        let ledger = ledger();
        ledger.set("a".into(), "1".into()).await.unwrap();
        ledger.set("a".into(), "2".into()).await.unwrap();
        let settings = ledger.settings().await.unwrap();
        assert_eq!((settings[0].value.as_str(), settings[0].at), ("2", Timestamp::from_secs(5)));
        assert!(ledger.unset("a".into()).await.unwrap() && !ledger.unset("a".into()).await.unwrap());
        assert!(matches!(ledger.set(" ".into(), "1".into()).await, Err(Error::Refused { .. })));
        assert_eq!(ledger.settings().await.unwrap(), []);
    }
}
