//! The public entry: from a broker, pools and handlers to a running worker, and to its end.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use poolwright_broker::{ArchiveLimits, Broker, ServerId};
use poolwright_core::{Chance, Clock, DeadLetterSink, QueueName, clock::SystemClock};
use poolwright_handler::{Common, States};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, watch};

use crate::attempt::bounds::Alarm;
use crate::cancel::Roster;
use crate::config::{self, PoolConfig, Rules};
use crate::contact::Contact;
use crate::control::{self, Mail};
use crate::inbox::Inbox;
use crate::keeper::Leases;
use crate::pool::Pool;
use crate::pool::homes::Homes;
use crate::pool::permit::Slots;
use crate::pool::wake::Wake;
use crate::site::{Identity, Site, Stops, StoreReport};
use crate::status::{Counter, Counters};
use crate::threads::{self, Threads};
use crate::upkeep::letters;
use crate::{Error, Options, Problem, Report, Services, Status, signals};

/// How many archived tasks a queue keeps for how long, unless its limits say otherwise: asynq's numbers.
const ARCHIVE_TASKS_MAX: u64 = 10_000;
const ARCHIVE_DAYS_MAX: u64 = 90;

/// A worker: pools that turn claims into settlements.
#[derive(Debug)]
pub struct Server;

impl Server {
    /// Begins to describe a worker on this store.
    pub fn builder(broker: Arc<dyn Broker>) -> Builder {
        Builder {
            broker,
            pools: Vec::new(),
            limits: Vec::new(),
            services: None,
            rules: Rules::default(),
            states: Arc::default(),
            sink: None,
            clock: Arc::new(SystemClock),
            chance: Chance::from_entropy(),
            options: Options::default(),
        }
    }
}

/// Describes a worker.
#[must_use = "a builder does nothing until `start`"]
pub struct Builder {
    broker: Arc<dyn Broker>,
    pools: Vec<PoolConfig>,
    limits: Vec<ArchiveLimits>,
    services: Option<Arc<dyn Services>>,
    rules: Rules,
    states: Arc<States>,
    sink: Option<Arc<dyn DeadLetterSink>>,
    clock: Arc<dyn Clock>,
    chance: Chance,
    options: Options,
}

impl Builder {
    /// The pools that run in this process; at least one.
    pub fn pools(mut self, pools: impl IntoIterator<Item = PoolConfig>) -> Self {
        self.pools.extend(pools);
        self
    }

    /// Queues that this process keeps in order (due tasks, expired leases, retention), and how much their archives
    /// keep. The queues of its pools are kept in order anyway, by default with at most 10,000 archived tasks, none older
    /// than 90 days. Archived tasks without a recorded dead letter are spared while a sink is set, whatever is said here.
    pub fn limits(mut self, limits: impl IntoIterator<Item = ArchiveLimits>) -> Self {
        self.limits.extend(limits);
        self
    }

    /// The handlers, in their layers.
    pub fn services(mut self, services: Arc<dyn Services>) -> Self {
        self.services = Some(services);
        self
    }

    /// The rules of the task types; by default asynq's for all.
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// The application's values.
    pub fn states(mut self, states: impl Into<Arc<States>>) -> Self {
        self.states = states.into();
        self
    }

    /// Where dead letters go; without one they stay in the archive only.
    pub fn sink(mut self, sink: Arc<dyn DeadLetterSink>) -> Self {
        self.sink = Some(sink);
        self
    }

    /// The clock that timeouts follow; by default the system's. Leases and due times follow the store's.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The source of chance: draws of queues, spread of delays.
    pub fn chance(mut self, chance: Chance) -> Self {
        self.chance = chance;
        self
    }

    /// All knobs.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Starts threads and loops. A store that is away is no reason not to start: the worker waits for it.
    ///
    /// # Errors
    /// [`Error::Refused`] with everything that is wrong; [`Error::Threads`].
    pub fn start(mut self) -> Result<Running, Error> {
        let services = self.check()?;
        let mut threads = Threads::default();
        let mail = match self.sink.take() {
            Some(sink) => {
                let (way, waiting) = mpsc::channel(letters::WAITING_MAX);
                Some((way, Mail { sink, waiting, thread: threads.start_sink()? }))
            }
            None => None,
        };
        let (letters, mail) = mail.unzip();
        let site = Arc::new(self.site(services, &mut threads, letters)?);
        let runtime = threads::control()?;
        let control = runtime.handle().clone();
        let (done, report) = watch::channel(None);
        let here = Arc::clone(&site);
        let thread = std::thread::Builder::new().name("pw-control".into()).spawn(move || {
            let report = runtime.block_on(control::run(here, mail));
            runtime.shutdown_background();
            drop(threads);
            done.send_replace(Some(report));
        });
        thread.map_err(|source| threads::refused("the control plane", source))?;
        Ok(Running { site, report, control })
    }

    fn check(&self) -> Result<Arc<dyn Services>, Error> {
        let mut problems = config::problems(&self.pools);
        problems.extend(self.options.problems());
        match &self.services {
            Some(services) if problems.is_empty() => Ok(Arc::clone(services)),
            Some(_) => Err(Error::Refused { problems }),
            None => {
                problems.push(Problem::NoServices);
                Err(Error::Refused { problems })
            }
        }
    }

    fn site(
        self,
        services: Arc<dyn Services>,
        threads: &mut Threads,
        letters: Option<mpsc::Sender<poolwright_core::DeadLetter>>,
    ) -> Result<Site, Error> {
        let limits = self.all_limits(letters.is_some());
        let (look, changed) = (Arc::default(), Arc::<Notify>::default());
        let homes = Homes::of(&self.pools);
        let pool = |config: PoolConfig| {
            Ok(Pool {
                slots: Slots::new(config.workers, Arc::clone(&look), Arc::clone(&changed)),
                threads: threads.start(&config, &self.options)?,
                wake: Wake::default(),
                completed: Counter::default(),
                failed: Counter::default(),
                config,
            })
        };
        let pools = self.pools.into_iter().map(pool).collect::<Result<Vec<_>, Error>>()?;
        let stops = Stops::default();
        let common = Common {
            states: self.states,
            report: Arc::new(StoreReport(Arc::clone(&self.broker))),
            clock: Arc::clone(&self.clock),
            stop: stops.firing.clone(),
        };
        Ok(Site {
            identity: identity(&self.options, &*self.broker, &self.chance),
            pools,
            queues: limits.iter().map(|limit| limit.queue.clone()).collect(),
            limits,
            roster: Roster::default(),
            homes,
            alarm: Alarm::default(),
            leases: Leases::new(self.clock.now()),
            contact: Contact::new(Arc::clone(&changed)),
            counters: Counters::default(),
            stops,
            claiming: AtomicBool::new(true),
            desk: Inbox::default(),
            letters,
            look,
            changed,
            common: Arc::new(common),
            broker: self.broker,
            clock: self.clock,
            chance: self.chance,
            options: self.options,
            rules: self.rules,
            services,
        })
    }

    /// The limits of every queue that upkeep looks after, one each.
    fn all_limits(&self, has_sink: bool) -> Vec<ArchiveLimits> {
        let mut queues = config::queues_of(&self.pools);
        queues.extend(self.limits.iter().map(|limit| limit.queue.clone()));
        let of = |queue: QueueName| {
            let said = self.limits.iter().find(|limit| limit.queue == queue);
            let (tasks_max, age_max) = said.map_or(
                (ARCHIVE_TASKS_MAX, std::time::Duration::from_secs(ARCHIVE_DAYS_MAX * 86_400)),
                |limit| (limit.tasks_max, limit.age_max),
            );
            let spare_unrecorded = has_sink || said.is_some_and(|limit| limit.spare_unrecorded);
            ArchiveLimits { queue, tasks_max, age_max, spare_unrecorded }
        };
        queues.into_iter().map(of).collect()
    }
}

fn identity(options: &Options, broker: &dyn Broker, chance: &Chance) -> Identity {
    let host = options.host.clone().unwrap_or_else(host);
    let pid = std::process::id();
    let [a, b, c, d] = chance.bytes();
    let id = ServerId(format!("{host}:{pid}:{a:02x}{b:02x}{c:02x}{d:02x}"));
    Identity { id, host, pid, started_at: broker.now() }
}

/// The name of this machine, where one can be found without asking a service.
fn host() -> String {
    let said = ["/proc/sys/kernel/hostname", "/etc/hostname"].iter().find_map(|path| {
        let text = std::fs::read_to_string(path).ok()?;
        Some(text.trim().to_owned()).filter(|name| !name.is_empty())
    });
    let named = || ["HOSTNAME", "COMPUTERNAME"].iter().find_map(|name| std::env::var(name).ok());
    said.or_else(named).unwrap_or_else(|| "localhost".to_owned())
}

/// A worker at work. Dropping it stops the worker gracefully, in the background.
#[must_use = "dropping it stops the worker"]
pub struct Running {
    site: Arc<Site>,
    report: watch::Receiver<Option<Report>>,
    control: Handle,
}

impl Running {
    /// Begins a graceful stop: no more claims; what runs may end within the grace, is then asked to end, and is given
    /// back unused if it does not. Returns at once; see [`Running::wait`].
    pub fn stop(&self) {
        self.site.stops.draining.cancel();
        self.site.changed.notify_waiters();
    }

    /// Ends at once: what runs is dropped and given back, as far as the store takes it within a second.
    pub fn stop_now(&self) {
        self.site.stops.now.cancel();
        self.stop();
    }

    /// Waits until the worker has ended. It does not end by itself.
    pub async fn wait(&self) -> Report {
        let mut report = self.report.clone();
        let ended = report.wait_for(Option::is_some).await.map(|report| report.clone());
        ended.ok().flatten().unwrap_or_else(|| Report {
            status: self.status(),
            unsettled: self.site.roster.len(),
            stuck: self.status().busy(),
            failed: Some("the control thread panicked".to_owned()),
        })
    }

    /// Runs until SIGTERM or Ctrl-C, then stops gracefully; a second signal ends it at once.
    ///
    /// # Errors
    /// [`Error::Signals`]; the worker goes on then.
    pub async fn until_signal(&self) -> Result<Report, Error> {
        // Signals are heard on the control thread: the caller's runtime may have no driver for them.
        let mut signals = {
            let _control = self.control.enter();
            signals::Signals::listen()?
        };
        tokio::select! {
            report = self.wait() => return Ok(report),
            name = signals.next() => tracing::info!(name, "stopping; once more ends at once"),
        }
        self.stop();
        tokio::select! {
            report = self.wait() => return Ok(report),
            name = signals.next() => tracing::warn!(name, "ending at once"),
        }
        self.stop_now();
        Ok(self.wait().await)
    }

    /// The worker at this moment.
    #[must_use]
    pub fn status(&self) -> Status {
        self.site.status()
    }

    /// Waits until the status is as wanted, and gives it; for ever, if it never is.
    pub async fn until(&self, mut holds: impl FnMut(&Status) -> bool) -> Status {
        let mut status = None;
        let look = |site: &Site| {
            let now = site.status();
            let is_it = holds(&now);
            status = Some(now);
            is_it
        };
        self.site.until(look).await;
        status.expect("it was looked at")
    }

    /// Its name in heartbeats.
    #[must_use]
    pub fn id(&self) -> &ServerId {
        &self.site.identity.id
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}
