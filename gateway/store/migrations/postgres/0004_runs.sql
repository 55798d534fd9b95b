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
    created_at      DOUBLE PRECISION NOT NULL,
    metadata        TEXT,
    idempotency_key TEXT,
    digest          BYTEA,
    status          TEXT NOT NULL,
    waiting_for     TEXT,
    children        TEXT,
    pausing         BOOLEAN NOT NULL,
    last_seq        BIGINT NOT NULL,
    epoch           BIGINT NOT NULL,
    owner           TEXT,
    lease_until     DOUBLE PRECISION,
    wake_at         DOUBLE PRECISION,
    updated_at      DOUBLE PRECISION NOT NULL,
    ended_at        DOUBLE PRECISION,
    turns           BIGINT NOT NULL,
    tool_calls      BIGINT NOT NULL,
    input_tokens    BIGINT NOT NULL,
    output_tokens   BIGINT NOT NULL,
    cost_nano       BIGINT NOT NULL,
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
    seq    BIGINT NOT NULL,
    type   TEXT NOT NULL,
    at     DOUBLE PRECISION NOT NULL,
    epoch  BIGINT NOT NULL,
    step   TEXT,
    agent  TEXT,
    data   TEXT NOT NULL,
    PRIMARY KEY (run_id, seq)
);

CREATE TABLE run_tasks (
    run_id     TEXT NOT NULL,
    task       TEXT NOT NULL,
    attempt    BIGINT NOT NULL,
    kind       TEXT NOT NULL,
    name       TEXT NOT NULL,
    agent      TEXT,
    step       TEXT,
    status     TEXT NOT NULL
        CHECK (status IN ('completed', 'paused', 'running', 'pending', 'skipped', 'failed', 'cancelled')),
    created_at DOUBLE PRECISION NOT NULL,
    ended_at   DOUBLE PRECISION,
    detail     TEXT,
    PRIMARY KEY (run_id, task, attempt)
);

CREATE TABLE agents (
    project    TEXT NOT NULL,
    name       TEXT NOT NULL,
    version    BIGINT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    spec       TEXT NOT NULL,
    deleted    BOOLEAN NOT NULL,
    PRIMARY KEY (project, name, version)
);

CREATE TABLE stream_tokens (
    digest     BYTEA PRIMARY KEY,
    run_id     TEXT NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL
);
CREATE INDEX stream_tokens_expiry ON stream_tokens (expires_at);
