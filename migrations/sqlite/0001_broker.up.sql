-- The broker's tables: queues, tasks and what hangs on them.
--
-- Times are microseconds since 1970 (UTC), durations are microseconds. `seq` and `pos` come from one counter
-- (`meta.next_pos`) and are never used twice.

-- One row: what every write transaction reads first.
CREATE TABLE meta (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    next_pos   INTEGER NOT NULL,            -- the next position; grows for ever
    generation INTEGER NOT NULL             -- changes when a queue appears, goes, is paused or resumed: caches are stale
) STRICT;
INSERT INTO meta (one, next_pos, generation) VALUES (1, 1, 0);

-- The counters are written in the transaction that moves the tasks they count, so that nobody ever counts rows.
CREATE TABLE queues (
    seq          INTEGER PRIMARY KEY,
    name         TEXT UNIQUE,               -- NULL: removed, and its rows are cleared step by step
    used         INTEGER NOT NULL DEFAULT 0, -- it got a task once; 0: only paused
    paused_at    INTEGER,
    pause_reason TEXT,
    wake         INTEGER NOT NULL DEFAULT 0, -- grows when there may be new work: other processes watch it
    front        INTEGER NOT NULL DEFAULT 0, -- no pending task has a place before this one
    back         INTEGER NOT NULL DEFAULT 0, -- no active task has this place or a later one
    pending      INTEGER NOT NULL DEFAULT 0,
    active       INTEGER NOT NULL DEFAULT 0,
    scheduled    INTEGER NOT NULL DEFAULT 0,
    retry        INTEGER NOT NULL DEFAULT 0,
    archived     INTEGER NOT NULL DEFAULT 0,
    completed    INTEGER NOT NULL DEFAULT 0,
    processed    INTEGER NOT NULL DEFAULT 0, -- ended attempts ever
    failed       INTEGER NOT NULL DEFAULT 0  -- of these, failed
) STRICT;

CREATE TABLE days (
    queue     INTEGER NOT NULL,
    day       INTEGER NOT NULL,             -- days since 1970, UTC
    processed INTEGER NOT NULL,
    failed    INTEGER NOT NULL,
    PRIMARY KEY (queue, day)
) STRICT, WITHOUT ROWID;

CREATE TABLE tasks (
    seq           INTEGER PRIMARY KEY,
    queue         INTEGER NOT NULL,
    id            TEXT    NOT NULL,
    state         INTEGER NOT NULL CHECK (state BETWEEN 0 AND 5), -- pending active scheduled retry archived completed
    pos           INTEGER NOT NULL,         -- its last place in the queue; a claim leaves it, so that a release finds it
    -- What the states that wait for a time, or have ended, are sorted by. Scheduled, retry: due · archived: when it failed
    -- · completed: end of retention. Pending, active: NULL.
    at            INTEGER CHECK ((at IS NULL) = (state < 2)),
    lease         INTEGER CHECK ((lease IS NULL) = (state <> 1)), -- active: ends then
    -- Bits. In other tables hang: 1 a lock, 2 index entries of subjects, 4 a follow-up, 8 the payload, 16 the mark that
    -- its dead letter is not recorded. 32: somebody asked for its end.
    flags         INTEGER NOT NULL DEFAULT 0,
    type          TEXT    NOT NULL,
    -- Numbers that travel together are one JSON list: every column costs every statement that reads or writes the row.
    limits        TEXT    NOT NULL,         -- [max_retry, timeout, retention, deadline or null]
    charges       TEXT,                     -- [retried, deferrals, crashes]; NULL: none yet
    enqueued_at   INTEGER NOT NULL,
    since         INTEGER,                  -- pending: waits since, NULL: since enqueued_at; active: so it waited, for a
                                            -- release; completed: when it ended
    started_at    INTEGER,
    token         INTEGER,                  -- of the present or last attempt: a secret, the same for all tasks of a claim
    claim         INTEGER,                  -- the claim request that took it; NULL after a take-over
    demand        INTEGER,                  -- which demand of that request
    about         TEXT,                     -- JSON: headers, subjects, scopes, tenant, unique lock
    failure       TEXT,                     -- JSON: the last one: class, error, at
    progress      TEXT,                     -- JSON: done, note, at
    result        BLOB,
    payload       BLOB,                     -- NULL: in `payloads`
    UNIQUE (id, queue)                      -- ids first: they differ early, and grow with time
) STRICT;

-- A task is in exactly one of the two. What waits for a worker or has one is in a narrow one, because all tasks pass through
-- it; a claim changes neither place nor entry, and `queues.front` and `queues.back` say where to look in it. The lists that
-- are ordered by a time are ordered by id where times are equal. What few tasks need has a table instead of a third
-- index, which every statement would have to open. A statement names its index's condition word for word.
CREATE INDEX tasks_live ON tasks (queue, pos) WHERE at IS NULL;
CREATE INDEX tasks_by_time ON tasks (queue, state, at, id) WHERE at IS NOT NULL;

-- Running tasks whose end somebody asked for: other processes look here for theirs.
CREATE TABLE cancels (
    task INTEGER PRIMARY KEY
) STRICT;

-- Archived tasks whose dead letter nobody has confirmed.
CREATE TABLE unrecorded (
    queue     INTEGER NOT NULL,
    failed_at INTEGER NOT NULL,
    id        TEXT    NOT NULL,
    task      INTEGER NOT NULL,
    PRIMARY KEY (queue, failed_at, id)
) STRICT, WITHOUT ROWID;

-- Large payloads stay out of the row, which every claim and every lease extension writes anew.
CREATE TABLE payloads (
    task  INTEGER PRIMARY KEY,
    bytes BLOB NOT NULL
) STRICT;

-- A task enqueued with `run_again` while its id was running.
CREATE TABLE follow_ups (
    task    INTEGER PRIMARY KEY,            -- the running one
    body    TEXT NOT NULL,                  -- the new task as JSON, without its payload
    payload BLOB NOT NULL
) STRICT;

CREATE TABLE locks (
    queue INTEGER NOT NULL,
    key   TEXT    NOT NULL,
    task  INTEGER NOT NULL,                 -- who holds it
    until INTEGER NOT NULL,                 -- it is free from then on
    PRIMARY KEY (queue, key)
) STRICT, WITHOUT ROWID;

-- Subjects and scopes, by which people look for work. The task's own row decides; this only finds it.
CREATE TABLE subjects (
    role INTEGER NOT NULL,                  -- 0 subject, 1 scope
    kind TEXT    NOT NULL,
    id   TEXT    NOT NULL,
    task INTEGER NOT NULL,
    PRIMARY KEY (role, kind, id, task)
) STRICT, WITHOUT ROWID;

CREATE TABLE quarantine (
    seq    INTEGER PRIMARY KEY,
    queue  INTEGER NOT NULL,
    id     TEXT    NOT NULL,
    reason TEXT    NOT NULL,
    raw    BLOB    NOT NULL,
    at     INTEGER NOT NULL
) STRICT;
CREATE INDEX quarantine_by_queue ON quarantine (queue);

CREATE TABLE servers (
    id    TEXT PRIMARY KEY,
    until INTEGER NOT NULL,
    beat  TEXT NOT NULL                     -- JSON
) STRICT, WITHOUT ROWID;

-- For people with a SQLite shell; no code reads it.
CREATE VIEW task_list AS
SELECT q.name AS queue, t.id, t.type,
       CASE t.state WHEN 0 THEN 'pending' WHEN 1 THEN 'active' WHEN 2 THEN 'scheduled'
                    WHEN 3 THEN 'retry' WHEN 4 THEN 'archived' ELSE 'completed' END AS state,
       coalesce(t.charges ->> 0, 0) AS retried, t.limits ->> 0 AS max_retry, t.failure ->> 'class' AS failed_class, t.failure ->> 'error' AS failed_error,
       strftime('%Y-%m-%dT%H:%M:%fZ', t.enqueued_at / 1000000.0, 'unixepoch') AS enqueued
FROM tasks t JOIN queues q ON q.seq = t.queue
WHERE q.name IS NOT NULL;
