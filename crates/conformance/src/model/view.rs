//! Everything that can be seen of a store.

use poolwright_broker::{DayStats, Find, Held, PageRequest, QueueStats, ServerBeat};
use poolwright_core::{QueueName, Scope, State, Subject, TaskKey, TaskRecord, TypeName};

use super::dice::{QUEUES, SUBJECTS};
use super::side::Side;
use crate::builders::{queue, queues};
use crate::observe::{differences, without_token};

/// Small enough that lists have several pages.
const PAGE: u32 = 3;

/// A task that a search found.
type Match = (TaskKey, State, TypeName);

/// Everything, tokens left out.
#[derive(Debug, PartialEq)]
pub(super) struct View {
    queues: Vec<QueueName>,
    stats: Vec<QueueStats>,
    history: Vec<Vec<DayStats>>,
    lists: Vec<(QueueName, State, Vec<TaskRecord>)>,
    found: Vec<(Find, Vec<Match>)>,
    unrecorded: Vec<TaskRecord>,
    servers: Vec<ServerBeat>,
    quarantined: usize,
}

impl View {
    /// Looks at a store. Looking must not fail.
    pub(super) async fn of(side: &mut Side<'_>) -> Self {
        const WELL: &str = "looking at a store that is well does not fail";
        let broker = side.broker();
        let mut view = Self {
            queues: broker.queues().await.expect(WELL),
            stats: broker.queue_stats(queues(&QUEUES)).await.expect(WELL),
            history: Vec::new(),
            lists: Vec::new(),
            found: Vec::new(),
            unrecorded: Vec::new(),
            servers: broker.servers().await.expect(WELL),
            quarantined: 0,
        };
        side.letters.clear();
        for name in QUEUES.map(queue) {
            view.history.push(broker.history(name.clone(), 3).await.expect(WELL));
            view.quarantined += broker.quarantine(name.clone(), 10).await.expect(WELL).len();
            for state in State::ALL {
                view.lists.push((name.clone(), state, list(side, &name, state).await));
            }
            for task in broker.unrecorded(vec![name], 1_000).await.expect(WELL) {
                side.letters.extend(Held::of(&task));
                view.unrecorded.push(without_token(task));
            }
        }
        for id in SUBJECTS {
            for what in [Find::Subject(Subject::new("doc", id)), Find::Scope(Scope::new("base", id))] {
                let mut found = broker.find(what.clone(), 1_000).await.expect(WELL);
                assert!(found.complete, "everything in a small world is found");
                found.tasks.sort();
                view.found.push((what, found.tasks));
            }
        }
        view.agree_with_itself();
        view
    }

    /// The numbers and the lists of one store tell the same.
    fn agree_with_itself(&self) {
        for (queue, state, tasks) in &self.lists {
            let stats = self.stats.iter().find(|stats| stats.queue == *queue).expect("it was asked for");
            assert_eq!(stats.count(*state), tasks.len() as u64, "{queue} counts its {state} tasks");
            assert!(tasks.iter().all(|task| task.state == *state), "{queue} lists only {state} tasks");
        }
        for (what, found) in &self.found {
            let tasks = self.lists.iter().flat_map(|(_, _, tasks)| tasks);
            let mut expected: Vec<_> = tasks
                .filter(|task| match what {
                    Find::Subject(subject) => task.subjects.contains(subject),
                    Find::Scope(scope) => task.scopes.contains(scope),
                })
                .map(|task| (task.key.clone(), task.state, task.task_type.clone()))
                .collect();
            expected.sort();
            assert_eq!(*found, expected, "the index lists for {what:?} what the records say");
        }
    }

    /// The first part in which two stores differ, and how.
    pub(super) fn differences(&self, other: &Self) -> Option<(String, String)> {
        let part = |name: &str, text: Option<String>| text.map(|text| (name.to_owned(), text));
        let lists = self.lists.iter().zip(&other.lists).find_map(|(left, right)| {
            part(&format!("{} tasks of {}", left.1, left.0), differences(&left.2, &right.2))
        });
        lists
            .or_else(|| part("numbers", differences(&self.stats, &other.stats)))
            .or_else(|| part("queues", differences(&self.queues, &other.queues)))
            .or_else(|| part("history", differences(&self.history, &other.history)))
            .or_else(|| part("index", differences(&self.found, &other.found)))
            .or_else(|| part("unrecorded ends", differences(&self.unrecorded, &other.unrecorded)))
            .or_else(|| part("servers", differences(&self.servers, &other.servers)))
            .or_else(|| part("quarantine", differences(&self.quarantined, &other.quarantined)))
    }
}

/// All tasks of one list, page by page.
async fn list(side: &Side<'_>, queue: &QueueName, state: State) -> Vec<TaskRecord> {
    let (mut tasks, mut after) = (Vec::new(), None);
    loop {
        let request = PageRequest { queue: queue.clone(), state, after, limit: PAGE };
        let page = side.broker().page(request).await.expect("a page of a list that exists is shown");
        tasks.extend(page.tasks.into_iter().map(without_token));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    if state == State::Active {
        assert!(tasks.is_sorted_by_key(|task| std::cmp::Reverse(task.started_at)), "latest claim first");
        // Of those that were claimed at the same time, any may come first.
        tasks.sort_by(|a, b| b.started_at.cmp(&a.started_at).then_with(|| a.key.cmp(&b.key)));
    }
    tasks
}
