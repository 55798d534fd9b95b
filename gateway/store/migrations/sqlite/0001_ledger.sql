-- The ledger: calls, their attempts, the keys, what each key has used, and the daily roll-ups.
-- Times are Unix seconds, money is nano-dollars. docs/ledger.md explains every column.

CREATE TABLE requests (
    seq           INTEGER PRIMARY KEY,
    id            TEXT NOT NULL UNIQUE,
    at            REAL NOT NULL,
    project       TEXT NOT NULL,
    key_id        TEXT NOT NULL,
    key_name      TEXT NOT NULL,
    alias         TEXT NOT NULL,
    origin        TEXT NOT NULL,
    stream        BOOLEAN NOT NULL,
    config_hash   TEXT NOT NULL,
    end_user      TEXT,
    parent        TEXT,
    prompt        TEXT,
    prompt_hash   TEXT,
    trace_id      TEXT,
    route         TEXT,
    status        TEXT NOT NULL
        CHECK (status IN ('open', 'completed', 'failed', 'partial', 'cancelled', 'interrupted')),
    http_status   INTEGER,
    fault         TEXT,
    first_cause   TEXT,
    attempt_count INTEGER,
    timings       TEXT,
    ended_at      REAL,
    lease_until   REAL NOT NULL,
    holds_slot    BOOLEAN NOT NULL
);
CREATE INDEX requests_open ON requests (lease_until) WHERE status = 'open';
CREATE INDEX requests_end_user ON requests (end_user) WHERE end_user IS NOT NULL;

CREATE TABLE attempts (
    request_seq         INTEGER NOT NULL REFERENCES requests (seq),
    number              INTEGER NOT NULL,
    id                  TEXT NOT NULL,
    kind                TEXT NOT NULL,
    at                  REAL NOT NULL,
    day                 INTEGER NOT NULL,
    provider            TEXT NOT NULL,
    model               TEXT NOT NULL,
    dialect             TEXT NOT NULL,
    estimated_input     INTEGER NOT NULL,
    reserved_tokens     INTEGER NOT NULL,
    reserved_nano       INTEGER NOT NULL,
    price_table         TEXT NOT NULL,
    lease_until         REAL NOT NULL,
    status              TEXT NOT NULL
        CHECK (status IN ('open', 'completed', 'failed', 'partial', 'cancelled', 'interrupted')),
    usage_source        TEXT CHECK (usage_source IN ('provider', 'estimated', 'unknown')),
    ended_at            REAL,
    input_tokens        INTEGER,
    output_tokens       INTEGER,
    cache_read_tokens   INTEGER,
    cache_write_tokens  INTEGER,
    reasoning_tokens    INTEGER,
    cost_nano           INTEGER,
    charged_nano        INTEGER,
    overrun_nano        INTEGER,
    usage_invalid       BOOLEAN,
    ttft_ms             REAL,
    total_ms            REAL,
    finish_reason       TEXT,
    fault               TEXT,
    fault_message       TEXT,
    upstream_status     INTEGER,
    upstream_request_id TEXT,
    model_reported      TEXT,
    dropped             TEXT,
    adjusted            TEXT,
    injected            TEXT,
    timings             TEXT,
    counts              TEXT,
    PRIMARY KEY (request_seq, number)
) WITHOUT ROWID;
-- Small and always in memory: it holds only what is under way.
CREATE UNIQUE INDEX attempts_open ON attempts (id) WHERE status = 'open';

CREATE TABLE accounts (
    key_id        TEXT PRIMARY KEY,
    day           INTEGER NOT NULL,
    day_nano      INTEGER NOT NULL,
    month_nano    INTEGER NOT NULL,
    total_nano    INTEGER NOT NULL,
    reserved_nano INTEGER NOT NULL,
    in_flight     INTEGER NOT NULL,
    minute        BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE rollups (
    day                INTEGER NOT NULL,
    project            TEXT NOT NULL,
    key_id             TEXT NOT NULL,
    alias              TEXT NOT NULL,
    provider           TEXT NOT NULL,
    model              TEXT NOT NULL,
    prompt             TEXT NOT NULL,
    key_name           TEXT NOT NULL,
    requests           INTEGER NOT NULL,
    attempts           INTEGER NOT NULL,
    refused            INTEGER NOT NULL,
    faults             INTEGER NOT NULL,
    unknown_usage      INTEGER NOT NULL,
    estimated_usage    INTEGER NOT NULL,
    input_tokens       INTEGER NOT NULL,
    output_tokens      INTEGER NOT NULL,
    cache_read_tokens  INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    reasoning_tokens   INTEGER NOT NULL,
    cost_nano          INTEGER NOT NULL,
    estimated_nano     INTEGER NOT NULL,
    overrun_nano       INTEGER NOT NULL,
    PRIMARY KEY (day, project, key_id, alias, provider, model, prompt)
) WITHOUT ROWID;

CREATE TABLE keys (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    digest     BLOB NOT NULL UNIQUE,
    role       TEXT NOT NULL CHECK (role IN ('caller', 'admin')),
    project    TEXT NOT NULL,
    created_at REAL NOT NULL,
    models     TEXT,
    limits     TEXT,
    expires_at REAL,
    revoked_at REAL,
    settings   TEXT
) WITHOUT ROWID;

-- Numbers that belong to the whole database: the keys' version, the probe of readiness.
CREATE TABLE counters (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO counters (name, value) VALUES ('keys_version', 0), ('probe', 0);
