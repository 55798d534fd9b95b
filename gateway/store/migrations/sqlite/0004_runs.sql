-- Runs: the row that says where each stands, its events, its tasks; agents that callers define;
-- tokens to follow one run. Events are content at rest.

CREATE TABLE runs (
    id              TEXT PRIMARY KEY,
    project         TEXT NOT NULL,
    key_id          TEXT NOT NULL,
    kind            TEXT NOT NULL,
    agent           TEXT NOT NULL,
    parent          TEXT,
    end_user        TEXT,
    created_at      REAL NOT NULL,
    metadata        TEXT,
    idempotency_key TEXT,
    digest          BLOB,
    status          TEXT NOT NULL,
    waiting_for     TEXT,
    children        TEXT,
    pausing         BOOLEAN NOT NULL,
    last_seq        INTEGER NOT NULL,
    epoch           INTEGER NOT NULL,
    owner           TEXT,
    lease_until     REAL,
    wake_at         REAL,
    updated_at      REAL NOT NULL,
    ended_at        REAL,
    turns           INTEGER NOT NULL,
    tool_calls      INTEGER NOT NULL,
    input_tokens    INTEGER NOT NULL,
    output_tokens   INTEGER NOT NULL,
    cost_nano       INTEGER NOT NULL,
    summary         TEXT,
    swept           BOOLEAN NOT NULL
);
CREATE INDEX runs_listing ON runs (project, created_at, id);
CREATE UNIQUE INDEX runs_idempotency ON runs (project, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
-- Small and always in memory: they hold only what is under way.
CREATE INDEX runs_work ON runs (created_at) WHERE status IN ('queued', 'running', 'cancelling');
CREATE INDEX runs_wake ON runs (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX runs_children ON runs (id) WHERE children IS NOT NULL;
CREATE INDEX runs_parent ON runs (parent) WHERE parent IS NOT NULL;
CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE run_events (
    run_id TEXT NOT NULL,
    seq    INTEGER NOT NULL,
    type   TEXT NOT NULL,
    at     REAL NOT NULL,
    epoch  INTEGER NOT NULL,
    step   TEXT,
    agent  TEXT,
    data   TEXT NOT NULL,
    PRIMARY KEY (run_id, seq)
) WITHOUT ROWID;

CREATE TABLE run_tasks (
    run_id     TEXT NOT NULL,
    task       TEXT NOT NULL,
    attempt    INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    name       TEXT NOT NULL,
    agent      TEXT,
    step       TEXT,
    status     TEXT NOT NULL
        CHECK (status IN ('completed', 'paused', 'running', 'pending', 'skipped', 'failed', 'cancelled')),
    created_at REAL NOT NULL,
    ended_at   REAL,
    detail     TEXT,
    PRIMARY KEY (run_id, task, attempt)
) WITHOUT ROWID;

CREATE TABLE agents (
    project    TEXT NOT NULL,
    name       TEXT NOT NULL,
    version    INTEGER NOT NULL,
    created_at REAL NOT NULL,
    spec       TEXT NOT NULL,
    deleted    BOOLEAN NOT NULL,
    PRIMARY KEY (project, name, version)
) WITHOUT ROWID;

CREATE TABLE stream_tokens (
    digest     BLOB PRIMARY KEY,
    run_id     TEXT NOT NULL,
    expires_at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX stream_tokens_expiry ON stream_tokens (expires_at);
