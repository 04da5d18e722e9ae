//! A store in memory with a topology, and short ways to bring tasks into each state.

use std::sync::Arc;
use std::time::Duration;

use poolwright_broker::{
    Broker, ClaimId, ClaimRequest, Demand, Enqueued, Held, PoolBeat, RunningTask, ServerBeat, ServerId,
    WeightedQueue,
};
use poolwright_core::clock::ManualClock;
use poolwright_core::{
    Chance, Charge, Class, NewTask, PoolName, QueueName, Settlement, State, TaskId, TaskKey, TaskRecord,
    Timestamp, TypeName, When,
};
use poolwright_inspector::TaskInspector;
use poolwright_registry::Topology;
use poolwright_store_memory::MemoryStore;

pub(crate) const START: Timestamp = Timestamp::from_secs(1_900_000_000);

pub(crate) struct Stage {
    pub(crate) broker: Arc<dyn Broker>,
    pub(crate) inspector: TaskInspector,
    pub(crate) clock: ManualClock,
    claims: Chance,
}

impl Stage {
    /// Two pools and an elastic one; `maintenance` is stored as `low`; `kb:delete` is protected.
    pub(crate) fn new() -> Self {
        let clock = ManualClock::at(START);
        let broker: Arc<dyn Broker> = MemoryStore::new(Arc::new(clock.clone()), Chance::seeded(1));
        let topology = Topology::builder()
            .pool("core", 8, [("default", 2)])
            .pool("upkeep", 4, [("maintenance", 1)])
            .elastic("shared", 6, [("default", 3)])
            .lines("[queues.default]\nlabel = \"Documents\"\n[queues.maintenance]\nstored = \"low\"")
            .lines("[task_defaults]\nshows = [\"knowledge_id\", \"state\", \"knowledge_ids#count\"]")
            .task_with("document:process", "default", "max_retry = 3")
            .task_with("kb:delete", "maintenance", "protected = true")
            .task_with(
                "wiki:finalize",
                "maintenance",
                "fields = [\"kb_id\"]\nid = \"wiki-{kb_id}\"\non_conflict = \"run_again\"",
            )
            .build()
            .unwrap();
        let inspector = TaskInspector::new(broker.clone(), topology);
        Self { broker, inspector, clock, claims: Chance::seeded(7) }
    }

    pub(crate) async fn enqueue(&self, task: NewTask) -> Enqueued {
        self.broker.enqueue(vec![task]).await.unwrap().remove(0).unwrap()
    }

    /// Brings a fresh task into this state.
    pub(crate) async fn put(&self, queue: &str, id: &str, state: State) -> TaskKey {
        self.put_task(document(queue, id), state).await
    }

    pub(crate) async fn put_task(&self, mut task: NewTask, state: State) -> TaskKey {
        let key = task.key.clone();
        if state == State::Scheduled {
            task.when = When::After(Duration::from_secs(60));
        }
        task.retention = Duration::from_secs(3_600);
        self.enqueue(task).await;
        let settlement = match state {
            State::Pending | State::Scheduled => return key,
            State::Active => {
                self.claim(key.queue.as_str()).await;
                return key;
            }
            State::Retry => Settlement::Retry {
                after: Duration::from_secs(30),
                error: "boom".into(),
                class: Class::Transient,
                charge: Charge::Retry,
            },
            State::Archived => Settlement::Archive { error: "no use".into(), class: Class::Permanent },
            State::Completed => Settlement::Complete {
                retain_for: Duration::from_secs(3_600),
                result: Some("\"done\"".into()),
            },
        };
        let task = self.claim(key.queue.as_str()).await;
        self.broker.settle(vec![(Held::of(&task).unwrap(), settlement)]).await.unwrap().remove(0).unwrap();
        key
    }

    /// Claims the first pending task of a queue.
    pub(crate) async fn claim(&self, queue: &str) -> TaskRecord {
        self.try_claim(queue).await.expect("a pending task")
    }

    pub(crate) async fn try_claim(&self, queue: &str) -> Option<TaskRecord> {
        let queues = vec![WeightedQueue { queue: QueueName::new(queue).unwrap(), weight: 1 }];
        let demand = Demand { pool: PoolName::new("core").unwrap(), slots: 1, queues, seed: 1 };
        let request = ClaimRequest {
            id: ClaimId::fresh(&self.claims),
            resent: false,
            lease: Duration::from_secs(10),
            demands: vec![demand],
        };
        self.broker.claim(request).await.unwrap().claims.pop().map(|claim| claim.task)
    }

    /// A process that runs one pool and these tasks.
    pub(crate) async fn beat(&self, pool: &str, pid: u32, workers: u32, stopping: bool, tasks: &[TaskKey]) {
        let pool = PoolName::new(pool).unwrap();
        let running = |key: &TaskKey| RunningTask {
            key: key.clone(),
            task_type: TypeName::new("document:process").unwrap(),
            pool: pool.clone(),
            started_at: START,
            stalled: false,
        };
        let beat = ServerBeat {
            id: ServerId(format!("host:{pid}:x")),
            host: "host".into(),
            pid,
            started_at: START,
            beat_at: START,
            stopping,
            pools: vec![PoolBeat {
                pool: pool.clone(),
                workers,
                busy: u32::try_from(tasks.len()).unwrap(),
                stalled: 0,
                queues: vec![],
            }],
            tasks: tasks.iter().map(running).collect(),
        };
        self.broker.beat(beat, Duration::from_secs(10)).await.unwrap();
    }

    pub(crate) async fn state(&self, key: &TaskKey) -> Option<State> {
        self.broker.get(key.clone()).await.unwrap().map(|task| task.state)
    }
}

pub(crate) fn typed(queue: &str, id: &str, task_type: &str) -> NewTask {
    let payload = r#"{"knowledge_id":"kn_1","state":"shadow","knowledge_ids":[1,2],"secret":"s3cret"}"#;
    NewTask::new(
        QueueName::new(queue).unwrap(),
        TaskId::new(id).unwrap(),
        TypeName::new(task_type).unwrap(),
        payload.as_bytes(),
    )
}

pub(crate) fn document(queue: &str, id: &str) -> NewTask {
    typed(queue, id, "document:process")
}
