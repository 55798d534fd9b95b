-- The ledger: calls, their attempts, the keys, what each key has used, and the daily roll-ups.
-- Times are Unix seconds, money is nano-dollars. docs/ledger.md explains every column.

CREATE TABLE requests (
    seq           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id            TEXT NOT NULL UNIQUE,
    at            DOUBLE PRECISION NOT NULL,
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
    http_status   BIGINT,
    fault         TEXT,
    first_cause   TEXT,
    attempt_count BIGINT,
    timings       TEXT,
    ended_at      DOUBLE PRECISION,
    lease_until   DOUBLE PRECISION NOT NULL,
    holds_slot    BOOLEAN NOT NULL
);
CREATE INDEX requests_open ON requests (lease_until) WHERE status = 'open';
CREATE INDEX requests_end_user ON requests (end_user) WHERE end_user IS NOT NULL;

CREATE TABLE attempts (
    request_seq         BIGINT NOT NULL REFERENCES requests (seq),
    number              BIGINT NOT NULL,
    id                  TEXT NOT NULL,
    kind                TEXT NOT NULL,
    at                  DOUBLE PRECISION NOT NULL,
    day                 BIGINT NOT NULL,
    provider            TEXT NOT NULL,
    model               TEXT NOT NULL,
    dialect             TEXT NOT NULL,
    estimated_input     BIGINT NOT NULL,
    reserved_tokens     BIGINT NOT NULL,
    reserved_nano       BIGINT NOT NULL,
    price_table         TEXT NOT NULL,
    lease_until         DOUBLE PRECISION NOT NULL,
    status              TEXT NOT NULL
        CHECK (status IN ('open', 'completed', 'failed', 'partial', 'cancelled', 'interrupted')),
    usage_source        TEXT CHECK (usage_source IN ('provider', 'estimated', 'unknown')),
    ended_at            DOUBLE PRECISION,
    input_tokens        BIGINT,
    output_tokens       BIGINT,
    cache_read_tokens   BIGINT,
    cache_write_tokens  BIGINT,
    reasoning_tokens    BIGINT,
    cost_nano           BIGINT,
    charged_nano        BIGINT,
    overrun_nano        BIGINT,
    usage_invalid       BOOLEAN,
    ttft_ms             DOUBLE PRECISION,
    total_ms            DOUBLE PRECISION,
    finish_reason       TEXT,
    fault               TEXT,
    fault_message       TEXT,
    upstream_status     BIGINT,
    upstream_request_id TEXT,
    model_reported      TEXT,
    dropped             TEXT,
    adjusted            TEXT,
    injected            TEXT,
    timings             TEXT,
    counts              TEXT,
    PRIMARY KEY (request_seq, number)
);
-- Small and always in memory: it holds only what is under way.
CREATE UNIQUE INDEX attempts_open ON attempts (id) WHERE status = 'open';

CREATE TABLE accounts (
    key_id        TEXT PRIMARY KEY,
    day           BIGINT NOT NULL,
    day_nano      BIGINT NOT NULL,
    month_nano    BIGINT NOT NULL,
    total_nano    BIGINT NOT NULL,
    reserved_nano BIGINT NOT NULL,
    in_flight     BIGINT NOT NULL,
    minute        BYTEA NOT NULL
);

CREATE TABLE rollups (
    day                BIGINT NOT NULL,
    project            TEXT NOT NULL,
    key_id             TEXT NOT NULL,
    alias              TEXT NOT NULL,
    provider           TEXT NOT NULL,
    model              TEXT NOT NULL,
    prompt             TEXT NOT NULL,
    key_name           TEXT NOT NULL,
    requests           BIGINT NOT NULL,
    attempts           BIGINT NOT NULL,
    refused            BIGINT NOT NULL,
    faults             BIGINT NOT NULL,
    unknown_usage      BIGINT NOT NULL,
    estimated_usage    BIGINT NOT NULL,
    input_tokens       BIGINT NOT NULL,
    output_tokens      BIGINT NOT NULL,
    cache_read_tokens  BIGINT NOT NULL,
    cache_write_tokens BIGINT NOT NULL,
    reasoning_tokens   BIGINT NOT NULL,
    cost_nano          BIGINT NOT NULL,
    estimated_nano     BIGINT NOT NULL,
    overrun_nano       BIGINT NOT NULL,
    PRIMARY KEY (day, project, key_id, alias, provider, model, prompt)
);

CREATE TABLE keys (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    digest     BYTEA NOT NULL UNIQUE,
    role       TEXT NOT NULL CHECK (role IN ('caller', 'admin')),
    project    TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    models     TEXT,
    limits     TEXT,
    expires_at DOUBLE PRECISION,
    revoked_at DOUBLE PRECISION,
    settings   TEXT
);

-- Numbers that belong to the whole database: the keys' version, the probe of readiness.
CREATE TABLE counters (
    name  TEXT PRIMARY KEY,
    value BIGINT NOT NULL
);
INSERT INTO counters (name, value) VALUES ('keys_version', 0), ('probe', 0);
