-- A call and its first attempt are one row. Nearly every call has one attempt only, which begins with
-- it and ends with it: two rows for that, with an index each, were a quarter of what the ledger's
-- statements and commits took. Whoever reads finds `requests` and `attempts` as before, as views.

CREATE TABLE calls (
    seq                       INTEGER PRIMARY KEY,
    id                        TEXT NOT NULL UNIQUE,
    at                        REAL NOT NULL,
    project                   TEXT NOT NULL,
    key_id                    TEXT NOT NULL,
    key_name                  TEXT NOT NULL,
    alias                     TEXT NOT NULL,
    origin                    TEXT NOT NULL,
    stream                    BOOLEAN NOT NULL,
    config_hash               TEXT NOT NULL,
    end_user                  TEXT,
    parent                    TEXT,
    prompt                    TEXT,
    prompt_hash               TEXT,
    trace_id                  TEXT,
    route                     TEXT,
    status                    TEXT NOT NULL
        CHECK (status = 'open' OR status = 'completed' OR status = 'failed'
            OR status = 'partial' OR status = 'cancelled' OR status = 'interrupted'),
    http_status               INTEGER,
    fault                     TEXT,
    first_cause               TEXT,
    attempt_count             INTEGER,
    timings                   TEXT,
    ended_at                  REAL,
    lease_until               REAL NOT NULL,
    holds_slot                BOOLEAN NOT NULL,
    -- Its first attempt; all of it is NULL where there was none.
    first_number              INTEGER,
    first_id                  TEXT,
    first_kind                TEXT,
    first_at                  REAL,
    first_day                 INTEGER,
    first_provider            TEXT,
    first_model               TEXT,
    first_dialect             TEXT,
    first_estimated_input     INTEGER,
    first_reserved_tokens     INTEGER,
    first_reserved_nano       INTEGER,
    first_price_table         TEXT,
    first_lease_until         REAL,
    first_status              TEXT
        CHECK (first_status = 'open' OR first_status = 'completed' OR first_status = 'failed'
            OR first_status = 'partial' OR first_status = 'cancelled'
            OR first_status = 'interrupted'),
    first_usage_source        TEXT
        CHECK (first_usage_source = 'provider' OR first_usage_source = 'estimated'
            OR first_usage_source = 'unknown'),
    first_ended_at            REAL,
    first_input_tokens        INTEGER,
    first_output_tokens       INTEGER,
    first_cache_read_tokens   INTEGER,
    first_cache_write_tokens  INTEGER,
    first_reasoning_tokens    INTEGER,
    first_cost_nano           INTEGER,
    first_charged_nano        INTEGER,
    first_overrun_nano        INTEGER,
    first_usage_invalid       BOOLEAN,
    first_ttft_ms             REAL,
    first_total_ms            REAL,
    first_finish_reason       TEXT,
    first_fault               TEXT,
    first_fault_message       TEXT,
    first_upstream_status     INTEGER,
    first_upstream_request_id TEXT,
    first_model_reported      TEXT,
    first_dropped             TEXT,
    first_adjusted            TEXT,
    first_injected            TEXT,
    first_timings             TEXT,
    first_counts              TEXT
);
INSERT INTO calls SELECT r.*,
    a.number, a.id, a.kind, a.at, a.day, a.provider, a.model, a.dialect, a.estimated_input,
    a.reserved_tokens, a.reserved_nano, a.price_table, a.lease_until, a.status, a.usage_source,
    a.ended_at, a.input_tokens, a.output_tokens, a.cache_read_tokens, a.cache_write_tokens,
    a.reasoning_tokens, a.cost_nano, a.charged_nano, a.overrun_nano, a.usage_invalid, a.ttft_ms,
    a.total_ms, a.finish_reason, a.fault, a.fault_message, a.upstream_status,
    a.upstream_request_id, a.model_reported, a.dropped, a.adjusted, a.injected, a.timings,
    a.counts
FROM requests AS r LEFT JOIN attempts AS a ON a.request_seq = r.seq AND a.number = 1;

CREATE TABLE later_attempts (
    request_seq         INTEGER NOT NULL REFERENCES calls (seq),
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
        CHECK (status = 'open' OR status = 'completed' OR status = 'failed'
            OR status = 'partial' OR status = 'cancelled' OR status = 'interrupted'),
    usage_source        TEXT
        CHECK (usage_source = 'provider' OR usage_source = 'estimated' OR usage_source = 'unknown'),
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
INSERT INTO later_attempts SELECT * FROM attempts WHERE number > 1;

DROP TABLE attempts;
DROP TABLE requests;

CREATE VIEW requests AS SELECT
    seq, id, at, project, key_id, key_name, alias, origin, stream, config_hash, end_user, parent,
    prompt, prompt_hash, trace_id, route, status, http_status, fault, first_cause, attempt_count,
    timings, ended_at, lease_until, holds_slot
FROM calls;
CREATE VIEW attempts AS SELECT
    seq AS request_seq, first_number AS number, first_id AS id, first_kind AS kind,
    first_at AS at, first_day AS day, first_provider AS provider, first_model AS model,
    first_dialect AS dialect, first_estimated_input AS estimated_input,
    first_reserved_tokens AS reserved_tokens, first_reserved_nano AS reserved_nano,
    first_price_table AS price_table, first_lease_until AS lease_until, first_status AS status,
    first_usage_source AS usage_source, first_ended_at AS ended_at,
    first_input_tokens AS input_tokens, first_output_tokens AS output_tokens,
    first_cache_read_tokens AS cache_read_tokens, first_cache_write_tokens AS cache_write_tokens,
    first_reasoning_tokens AS reasoning_tokens, first_cost_nano AS cost_nano,
    first_charged_nano AS charged_nano, first_overrun_nano AS overrun_nano,
    first_usage_invalid AS usage_invalid, first_ttft_ms AS ttft_ms, first_total_ms AS total_ms,
    first_finish_reason AS finish_reason, first_fault AS fault,
    first_fault_message AS fault_message, first_upstream_status AS upstream_status,
    first_upstream_request_id AS upstream_request_id, first_model_reported AS model_reported,
    first_dropped AS dropped, first_adjusted AS adjusted, first_injected AS injected,
    first_timings AS timings, first_counts AS counts
FROM calls WHERE first_id IS NOT NULL
UNION ALL SELECT * FROM later_attempts;

-- Small and always in memory: they hold only what is under way.
CREATE INDEX calls_open ON calls (lease_until, first_lease_until)
    WHERE status = 'open' OR first_status = 'open';
CREATE UNIQUE INDEX later_attempts_open ON later_attempts (id) WHERE status = 'open';
CREATE INDEX calls_end_user ON calls (end_user) WHERE end_user IS NOT NULL;
