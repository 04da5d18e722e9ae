-- The ledger's tables: what outlives the queue.

CREATE TABLE dead_letters (
    id            INTEGER PRIMARY KEY AUTOINCREMENT, -- never used twice: people quote it
    queue         TEXT    NOT NULL,
    task          TEXT    NOT NULL,
    token         BLOB    NOT NULL,         -- of the attempt that ended it; empty: it never ran
    type          TEXT    NOT NULL,
    class         TEXT    NOT NULL,
    error         TEXT    NOT NULL,
    attempts      INTEGER NOT NULL,
    failed_at     INTEGER NOT NULL,
    tenant        TEXT,
    reach_kind    TEXT    NOT NULL,         -- what the failure touches at the widest
    reach_id      TEXT    NOT NULL,
    headers       TEXT    NOT NULL,         -- JSON
    subjects      TEXT    NOT NULL,         -- JSON
    scopes        TEXT    NOT NULL,         -- JSON
    replay_queue  TEXT,                     -- the last replay
    replay_task   TEXT,
    replayed_at   INTEGER,
    payload       BLOB    NOT NULL,
    UNIQUE (queue, task, token)
) STRICT;
CREATE INDEX dead_letters_by_type ON dead_letters (type, id);
CREATE INDEX dead_letters_by_reach ON dead_letters (reach_kind, reach_id, id);

CREATE TABLE settings (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
