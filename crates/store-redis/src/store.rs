//! The store: what all its parts share, and how a script is run.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::join_all;
use poolwright_broker::{Broker, Error, Reply};
use poolwright_core::{Chance, Clock, QueueName, Timestamp};
use redis::Value;

use crate::bells::Bells;
use crate::durable::Durable;
use crate::error::Error as OpenError;
use crate::gather::Gather;
use crate::held::HeldTasks;
use crate::keys::{Keys, QUEUES};
use crate::link::{Kind, Link};
use crate::options::RedisOptions;
use crate::reply::Parts;
use crate::script::{self, Call, Script};
use crate::shared::SharedQueues;
use crate::time::Time;

/// How long a queue's name counts as registered in a cluster, where that is a step of its own. A queue that another process
/// removed meanwhile is seen again after this.
const REGISTERED_FOR: Duration = Duration::from_secs(10);

/// A store on Redis.
pub struct RedisStore {
    pub(crate) link: Link,
    pub(crate) time: Time,
    pub(crate) chance: Chance,
    pub(crate) bells: Arc<Bells>,
    /// What this process has claimed and not settled yet.
    pub(crate) held: HeldTasks,
    /// Up to which second every archived task of a queue is known to have its dead letter.
    pub(crate) recorded_until: Mutex<HashMap<QueueName, String>>,
    registered: Mutex<HashMap<QueueName, Instant>>,
    durable: Option<Durable>,
    pub(crate) gather: Gather,
    /// Queues on which Go servers work, too.
    pub(crate) shared: SharedQueues,
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("link", &self.link.describe()).finish_non_exhaustive()
    }
}

/// Things of one queue or several, for one call: queues by number, from 1 on, as scripts count.
#[derive(Clone)]
pub(crate) struct Batch<T> {
    pub(crate) queues: Vec<QueueName>,
    /// Where each stood in the request, the number of its queue, and the thing.
    pub(crate) items: Vec<(usize, usize, T)>,
}

impl<T> Batch<T> {
    const fn new() -> Self {
        Self { queues: Vec::new(), items: Vec::new() }
    }

    fn push(&mut self, at: usize, queue: &QueueName, item: T) {
        let known = self.queues.iter().position(|known| known == queue);
        let number = known.unwrap_or_else(|| {
            self.queues.push(queue.clone());
            self.queues.len() - 1
        });
        self.items.push((at, number + 1, item));
    }
}

impl RedisStore {
    /// Connects, checks the server and loads the scripts. The server's clock rules. Connections live on the runtime on which this
    /// is called.
    ///
    /// # Errors
    /// [`OpenError`], with what was found, what was expected and the cure.
    pub async fn open(options: RedisOptions) -> Result<Arc<Self>, OpenError> {
        let chance = options.chance.clone();
        Self::open_with(options, Time::server(), chance).await
    }

    /// As [`open`](Self::open), with a clock that rules instead of the server's: for tests. It must never be behind
    /// the server's, which decides when keys with an expiry go.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn open_with_clock(
        options: RedisOptions,
        clock: Arc<dyn Clock>,
        chance: Chance,
    ) -> Result<Arc<Self>, OpenError> {
        Self::open_with(options, Time::given(clock), chance).await
    }

    async fn open_with(options: RedisOptions, time: Time, chance: Chance) -> Result<Arc<Self>, OpenError> {
        let link = Link::open(&options).await?;
        let store = Arc::new_cyclic(|store| Self {
            bells: Bells::new(link.clone(), store.clone()),
            durable: Durable::new(link.clone(), options.enqueue_replicas, options.write_timeout),
            link,
            time,
            chance,
            held: HeldTasks::default(),
            recorded_until: Mutex::default(),
            registered: Mutex::default(),
            shared: SharedQueues::default(),
            gather: Gather::default(),
        });
        store.load_scripts().await?;
        Ok(store)
    }

    /// Not needed for anything to work, and it makes the first calls as quick as the others.
    async fn load_scripts(&self) -> Result<(), OpenError> {
        for script in script::ALL {
            self.link.call(None, script.load(), Kind::Write).await?;
        }
        Ok(())
    }

    /// A call of this script, with the time that rules.
    pub(crate) fn call(&self, script: &'static Script) -> Call {
        Call::new(script, self.time.argument())
    }

    /// Runs a script, and takes the store's time off the front of its answer.
    pub(crate) async fn run(&self, call: Call, kind: Kind) -> Result<Parts, Error> {
        let answer =
            match self.durable.as_ref().filter(|_| std::ptr::eq(call.script, &raw const script::ENQUEUE)) {
                Some(durable) => durable.run(&call).await?,
                None => self.link.call(call.route(), call.by_sha(), kind).await,
            };
        let answer = match answer {
            Err(error) if error.is_noscript() => self.link.call(call.route(), call.by_text(), kind).await,
            answer => answer,
        };
        let mut parts = Parts::of(call.script.name, answer?)?;
        parts.at = parts.time()?;
        self.time.learn(parts.at);
        Ok(parts)
    }

    /// Divides things by the calls that may hold them: all in one, or one for each queue in a cluster.
    pub(crate) fn batches<T>(&self, things: impl IntoIterator<Item = (QueueName, T)>) -> Vec<Batch<T>> {
        let mut batches: Vec<Batch<T>> = Vec::new();
        for (at, (queue, thing)) in things.into_iter().enumerate() {
            let whole = if self.link.is_cluster() {
                batches.iter_mut().position(|batch| batch.queues[0] == queue)
            } else {
                (!batches.is_empty()).then_some(0)
            };
            let batch = match whole {
                Some(at) => &mut batches[at],
                None => {
                    batches.push(Batch::new());
                    batches.last_mut().expect("one was just put there")
                }
            };
            batch.push(at, &queue, thing);
        }
        batches
    }

    /// Queues as batches without things in them.
    pub(crate) fn queue_batches(&self, queues: Vec<QueueName>) -> Vec<Batch<()>> {
        self.batches(queues.into_iter().map(|queue| (queue, ())))
    }

    /// Runs one call for each batch, all at once.
    pub(crate) async fn run_all<T>(
        &self,
        batches: Vec<Batch<T>>,
        kind: Kind,
        build: impl Fn(&Batch<T>) -> Call,
    ) -> Result<Vec<(Batch<T>, Parts)>, Error> {
        let runs = batches.into_iter().map(|batch| {
            let call = build(&batch);
            async move { Ok((batch, self.run(call, kind).await?)) }
        });
        join_all(runs).await.into_iter().collect()
    }

    /// A call that begins with the queues of a batch: a key each, and their prefixes behind their number.
    pub(crate) fn call_for<T>(&self, script: &'static Script, batch: &Batch<T>) -> Call {
        let mut call = self.call(script);
        call.number(i128::try_from(batch.queues.len()).unwrap_or(0));
        for queue in &batch.queues {
            let keys = Keys::of(queue);
            call.key(keys.pending()).arg(keys.prefix().to_owned());
        }
        call
    }

    /// Wakes whoever watches the queues of these numbers, counted from 0.
    pub(crate) fn wake(&self, queues: &[QueueName], mut numbers: Parts) -> Result<(), Error> {
        while numbers.len() > 0 {
            if let Some(queue) = queues.get(numbers.place()?) {
                self.bells.ring(queue);
            }
        }
        Ok(())
    }

    /// Registers the names of queues where a script cannot, because the set of names lies on another node.
    pub(crate) async fn register(&self, queues: &[QueueName]) -> Result<(), Error> {
        if !self.link.is_cluster() {
            return Ok(());
        }
        for queue in queues {
            let known = self.registered().get(queue).is_some_and(|at| at.elapsed() < REGISTERED_FOR);
            if !known {
                let mut command = redis::cmd("SADD");
                command.arg(QUEUES).arg(queue.as_str());
                self.link.call(Some(QUEUES.as_bytes()), command, Kind::Write).await?;
                self.registered().insert(queue.clone(), Instant::now());
            }
        }
        Ok(())
    }

    /// Removes a queue's name in a cluster.
    pub(crate) async fn unregister(&self, queue: &QueueName) -> Result<bool, Error> {
        self.registered().remove(queue);
        let mut command = redis::cmd("SREM");
        command.arg(QUEUES).arg(queue.as_str());
        let answer = self.link.call(Some(QUEUES.as_bytes()), command, Kind::Write).await?;
        Ok(answer == Value::Int(1))
    }

    fn registered(&self) -> std::sync::MutexGuard<'_, HashMap<QueueName, Instant>> {
        self.registered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The beginning of tokens that nobody else makes: 12 random bytes.
    pub(crate) fn token_stem(&self) -> Bytes {
        let bytes: [u8; 12] = self.chance.bytes();
        Bytes::copy_from_slice(&bytes)
    }
}

impl Broker for RedisStore {
    fn now(&self) -> Timestamp {
        self.time.now()
    }

    fn describe(&self) -> String {
        self.link.describe().to_owned()
    }

    fn close(&self) -> Reply<'_, ()> {
        Box::pin(async {
            self.bells.close();
            self.durable.iter().for_each(Durable::close);
            self.link.close();
            Ok(())
        })
    }
}
