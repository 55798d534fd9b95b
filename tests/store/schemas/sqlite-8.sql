PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
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
INSERT INTO accounts VALUES('key_1',20000,600,600,600,500,1,X'');
CREATE TABLE agents (
    project    TEXT NOT NULL,
    name       TEXT NOT NULL,
    version    INTEGER NOT NULL,
    created_at REAL NOT NULL,
    spec       TEXT NOT NULL,
    deleted    BOOLEAN NOT NULL,
    PRIMARY KEY (project, name, version)
) WITHOUT ROWID;
CREATE TABLE conversations (
    id         TEXT PRIMARY KEY,
    project    TEXT NOT NULL,
    created_at REAL NOT NULL,
    used_at    REAL NOT NULL,
    metadata   TEXT NOT NULL,
    held_by    TEXT,
    held_until REAL
);
INSERT INTO conversations VALUES('conv_old','p',1728043200.0,1728043200.0,'{"k":"v"}',NULL,NULL);
CREATE TABLE counters (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO counters VALUES('keys_version',1);
INSERT INTO counters VALUES('probe',0);
INSERT INTO counters VALUES('prompts_version',0);
CREATE TABLE idempotency (
    project    TEXT NOT NULL,
    key        TEXT NOT NULL,
    digest     BLOB NOT NULL,
    request_id TEXT NOT NULL,
    at         REAL NOT NULL,
    held_until REAL NOT NULL,
    status     INTEGER,
    headers    TEXT,
    body       BLOB,
    PRIMARY KEY (project, key)
);
INSERT INTO idempotency VALUES('p1','key-1',X'0102','req_1',1728043201.0,1790000060.0,200,'{"content-type":"application/json"}',X'007b7dff');
CREATE TABLE items (
    owner     TEXT NOT NULL,
    direction TEXT NOT NULL CHECK (direction IN ('input', 'output', 'conversation')),
    place     INTEGER NOT NULL,
    id        TEXT NOT NULL,
    project   TEXT NOT NULL,
    item      TEXT NOT NULL,
    PRIMARY KEY (owner, direction, place)
);
INSERT INTO items VALUES('resp_old','input',0,'msg_resp_old-in','p','{"role":"user","content":"resp_old-in"}');
INSERT INTO items VALUES('resp_old','output',0,'msg_resp_old-out','p','{"role":"user","content":"resp_old-out"}');
INSERT INTO items VALUES('conv_old','conversation',0,'msg_old','p','{"role":"user","content":"old"}');
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
INSERT INTO keys VALUES('key_old','old',X'6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f','caller','default',1.0,NULL,'{"rpm":5}',NULL,NULL,NULL);
CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL);
INSERT INTO migrations VALUES(1,'ledger','1b7b6cde7259a249aae27584feb386dd341fa0b91b629d896ef2481af238172b');
INSERT INTO migrations VALUES(2,'responses','df3ef984bc04c1d29a25eae9fad26454b6bd2cf82f8f860dcc9f7d18efed3e32');
INSERT INTO migrations VALUES(3,'idempotency','73daef48344f02027a93c71985af087b4f2fa6d24c5cc60c9fa3c944e3f87b17');
INSERT INTO migrations VALUES(4,'runs','192f2a0dad0bd0568a3fde40874bcdd141fde621d8c46226db44734720a389da');
INSERT INTO migrations VALUES(5,'prompts','cc63e6bf679973739e8b429d95932664b76ee4612bbd3c7b92136c882df31262');
INSERT INTO migrations VALUES(6,'seals','61a19c45cbc1ad953b1791d3edc0530b2cb99c2bca50f81485d99d1ebee6a79f');
INSERT INTO migrations VALUES(7,'runs_listing','03ec0ee58aca5e0a2f2505d65aa5fbb2746a54d39385f71a48c6d1fb84332a4b');
INSERT INTO migrations VALUES(8,'plain_checks','ecbc2b3e089e5c87cedee5416a6694d25ff5b3a1bbb6a60612c977499b0d17b6');
CREATE TABLE prompt_labels (
    name    TEXT NOT NULL,
    label   TEXT NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (name, label),
    FOREIGN KEY (name, version) REFERENCES prompts (name, version)
);
INSERT INTO prompt_labels VALUES('support','production',1);
CREATE TABLE prompts (
    name       TEXT NOT NULL,
    version    INTEGER NOT NULL,
    hash       TEXT NOT NULL,
    at         REAL NOT NULL,
    definition TEXT NOT NULL,
    PRIMARY KEY (name, version)
);
INSERT INTO prompts VALUES('support',1,'a',1000.0,'{"system":"old"}');
CREATE TABLE responses (
    id           TEXT PRIMARY KEY,
    project      TEXT NOT NULL,
    thread       TEXT NOT NULL REFERENCES threads (id),
    previous     TEXT,
    conversation TEXT,
    at           REAL NOT NULL,
    end_user     TEXT,
    body         TEXT NOT NULL
);
INSERT INTO responses VALUES('resp_old','p','resp_old',NULL,NULL,1000.0,NULL,'{"id":"resp_old","output":[]}');
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
INSERT INTO rollups VALUES(20000,'default','key_1','smart','openai','gpt','','dev',1,1,0,0,0,0,10,20,0,0,0,600,0,0);
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
INSERT INTO run_events VALUES('run_old',1,'model.started',1728043201.0,0,'main/1','helper','{}');
INSERT INTO run_events VALUES('run_old',2,'model.started',1728043202.0,0,'main/1','helper','{}');
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
INSERT INTO runs VALUES('run_old','p1','key_1','agent','helper',NULL,NULL,1728043200.0,NULL,NULL,NULL,'running',NULL,NULL,0,2,0,NULL,NULL,NULL,1728043202.0,NULL,0,0,0,0,0,'{}',0);
CREATE TABLE stream_tokens (
    digest     BLOB PRIMARY KEY,
    run_id     TEXT NOT NULL,
    expires_at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE threads (
    id      TEXT PRIMARY KEY,
    project TEXT NOT NULL,
    used_at REAL NOT NULL
) WITHOUT ROWID;
INSERT INTO threads VALUES('resp_old','p',1000.0);
CREATE TABLE seals (
    digest   BLOB PRIMARY KEY,
    provider TEXT NOT NULL,
    family   TEXT NOT NULL,
    at       REAL NOT NULL
) WITHOUT ROWID;
INSERT INTO seals VALUES(X'5ea1','anthropic','claude',1728000000.0);
CREATE TABLE IF NOT EXISTS "requests" (
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
        CHECK (status = 'open' OR status = 'completed' OR status = 'failed'
            OR status = 'partial' OR status = 'cancelled' OR status = 'interrupted'),
    http_status   INTEGER,
    fault         TEXT,
    first_cause   TEXT,
    attempt_count INTEGER,
    timings       TEXT,
    ended_at      REAL,
    lease_until   REAL NOT NULL,
    holds_slot    BOOLEAN NOT NULL
);
INSERT INTO requests VALUES(1,'req_000000000000000000000001',1728043200.0,'default','key_1','dev','smart','openai-chat',0,'abc','ann',NULL,NULL,NULL,NULL,NULL,'completed',200,NULL,NULL,1,NULL,1728043200.0,1728043260.0,1);
INSERT INTO requests VALUES(2,'req_000000000000000000000003',1728043200.0,'default','key_1','dev','smart','openai-chat',0,'abc',NULL,NULL,'p1',NULL,NULL,NULL,'open',NULL,NULL,NULL,NULL,NULL,NULL,1728043260.0,1);
CREATE TABLE IF NOT EXISTS "attempts" (
    request_seq         INTEGER NOT NULL REFERENCES "requests" (seq),
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
INSERT INTO attempts VALUES(1,1,'att_000000000000000000000002','first',1728043200.0,20000,'openai','gpt','openai-responses',10,100,1000,'t1',1728043260.0,'completed','provider',1728043200.0,10,20,NULL,NULL,NULL,600,600,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO attempts VALUES(2,1,'att_000000000000000000000004','first',1728043200.0,20000,'openai','gpt','openai-responses',10,100,500,'t1',1728043260.0,'open',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE INDEX threads_used ON threads (used_at);
CREATE INDEX responses_thread ON responses (thread);
CREATE INDEX responses_end_user ON responses (end_user) WHERE end_user IS NOT NULL;
CREATE INDEX responses_conversation ON responses (conversation) WHERE conversation IS NOT NULL;
CREATE INDEX conversations_used ON conversations (used_at);
CREATE INDEX items_id ON items (id);
CREATE INDEX idempotency_at ON idempotency (at);
CREATE INDEX idempotency_request ON idempotency (request_id);
CREATE INDEX runs_listing ON runs (project, created_at, id);
CREATE UNIQUE INDEX runs_idempotency ON runs (project, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX runs_work ON runs (created_at) WHERE status IN ('queued', 'running', 'cancelling');
CREATE INDEX runs_wake ON runs (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX runs_children ON runs (id) WHERE children IS NOT NULL;
CREATE INDEX runs_leased ON runs (owner) WHERE lease_until IS NOT NULL;
CREATE INDEX runs_status ON runs (project, status, created_at, id);
CREATE INDEX runs_agent ON runs (project, agent, created_at, id);
CREATE INDEX runs_parent ON runs (parent, created_at, id) WHERE parent IS NOT NULL;
CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX stream_tokens_expiry ON stream_tokens (expires_at);
CREATE INDEX seals_at ON seals (at);
CREATE INDEX requests_open ON requests (lease_until) WHERE status = 'open';
CREATE INDEX requests_end_user ON requests (end_user) WHERE end_user IS NOT NULL;
CREATE UNIQUE INDEX attempts_open ON attempts (id) WHERE status = 'open';
COMMIT;
