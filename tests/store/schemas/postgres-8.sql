CREATE TABLE public.accounts (
    key_id text NOT NULL,
    day bigint NOT NULL,
    day_nano bigint NOT NULL,
    month_nano bigint NOT NULL,
    total_nano bigint NOT NULL,
    reserved_nano bigint NOT NULL,
    in_flight bigint NOT NULL,
    minute bytea NOT NULL
);
CREATE TABLE public.agents (
    project text NOT NULL,
    name text NOT NULL,
    version bigint NOT NULL,
    created_at double precision NOT NULL,
    spec text NOT NULL,
    deleted boolean NOT NULL
);
CREATE TABLE public.attempts (
    request_seq bigint NOT NULL,
    number bigint NOT NULL,
    id text NOT NULL,
    kind text NOT NULL,
    at double precision NOT NULL,
    day bigint NOT NULL,
    provider text NOT NULL,
    model text NOT NULL,
    dialect text NOT NULL,
    estimated_input bigint NOT NULL,
    reserved_tokens bigint NOT NULL,
    reserved_nano bigint NOT NULL,
    price_table text NOT NULL,
    lease_until double precision NOT NULL,
    status text NOT NULL,
    usage_source text,
    ended_at double precision,
    input_tokens bigint,
    output_tokens bigint,
    cache_read_tokens bigint,
    cache_write_tokens bigint,
    reasoning_tokens bigint,
    cost_nano bigint,
    charged_nano bigint,
    overrun_nano bigint,
    usage_invalid boolean,
    ttft_ms double precision,
    total_ms double precision,
    finish_reason text,
    fault text,
    fault_message text,
    upstream_status bigint,
    upstream_request_id text,
    model_reported text,
    dropped text,
    adjusted text,
    injected text,
    timings text,
    counts text,
    CONSTRAINT attempts_status_check CHECK ((status = ANY (ARRAY['open'::text, 'completed'::text, 'failed'::text, 'partial'::text, 'cancelled'::text, 'interrupted'::text]))),
    CONSTRAINT attempts_usage_source_check CHECK ((usage_source = ANY (ARRAY['provider'::text, 'estimated'::text, 'unknown'::text])))
);
CREATE TABLE public.conversations (
    id text NOT NULL,
    project text NOT NULL,
    created_at double precision NOT NULL,
    used_at double precision NOT NULL,
    metadata text NOT NULL,
    held_by text,
    held_until double precision
);
CREATE TABLE public.counters (
    name text NOT NULL,
    value bigint NOT NULL
);
CREATE TABLE public.idempotency (
    project text NOT NULL,
    key text NOT NULL,
    digest bytea NOT NULL,
    request_id text NOT NULL,
    at double precision NOT NULL,
    held_until double precision NOT NULL,
    status bigint,
    headers text,
    body bytea
);
CREATE TABLE public.items (
    owner text NOT NULL,
    direction text NOT NULL,
    place bigint NOT NULL,
    id text NOT NULL,
    project text NOT NULL,
    item text NOT NULL,
    CONSTRAINT items_direction_check CHECK ((direction = ANY (ARRAY['input'::text, 'output'::text, 'conversation'::text])))
);
CREATE TABLE public.keys (
    id text NOT NULL,
    name text NOT NULL,
    digest bytea NOT NULL,
    role text NOT NULL,
    project text NOT NULL,
    created_at double precision NOT NULL,
    models text,
    limits text,
    expires_at double precision,
    revoked_at double precision,
    settings text,
    CONSTRAINT keys_role_check CHECK ((role = ANY (ARRAY['caller'::text, 'admin'::text])))
);
CREATE TABLE public.migrations (
    number bigint NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL
);
CREATE TABLE public.prompt_labels (
    name text NOT NULL,
    label text NOT NULL,
    version bigint NOT NULL
);
CREATE TABLE public.prompts (
    name text NOT NULL,
    version bigint NOT NULL,
    hash text NOT NULL,
    at double precision NOT NULL,
    definition text NOT NULL
);
CREATE TABLE public.requests (
    seq bigint NOT NULL,
    id text NOT NULL,
    at double precision NOT NULL,
    project text NOT NULL,
    key_id text NOT NULL,
    key_name text NOT NULL,
    alias text NOT NULL,
    origin text NOT NULL,
    stream boolean NOT NULL,
    config_hash text NOT NULL,
    end_user text,
    parent text,
    prompt text,
    prompt_hash text,
    trace_id text,
    route text,
    status text NOT NULL,
    http_status bigint,
    fault text,
    first_cause text,
    attempt_count bigint,
    timings text,
    ended_at double precision,
    lease_until double precision NOT NULL,
    holds_slot boolean NOT NULL,
    CONSTRAINT requests_status_check CHECK ((status = ANY (ARRAY['open'::text, 'completed'::text, 'failed'::text, 'partial'::text, 'cancelled'::text, 'interrupted'::text])))
);
ALTER TABLE public.requests ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.requests_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.responses (
    id text NOT NULL,
    project text NOT NULL,
    thread text NOT NULL,
    previous text,
    conversation text,
    at double precision NOT NULL,
    end_user text,
    body text NOT NULL
);
CREATE TABLE public.rollups (
    day bigint NOT NULL,
    project text NOT NULL,
    key_id text NOT NULL,
    alias text NOT NULL,
    provider text NOT NULL,
    model text NOT NULL,
    prompt text NOT NULL,
    key_name text NOT NULL,
    requests bigint NOT NULL,
    attempts bigint NOT NULL,
    refused bigint NOT NULL,
    faults bigint NOT NULL,
    unknown_usage bigint NOT NULL,
    estimated_usage bigint NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cache_read_tokens bigint NOT NULL,
    cache_write_tokens bigint NOT NULL,
    reasoning_tokens bigint NOT NULL,
    cost_nano bigint NOT NULL,
    estimated_nano bigint NOT NULL,
    overrun_nano bigint NOT NULL
);
CREATE TABLE public.run_events (
    run_id text NOT NULL,
    seq bigint NOT NULL,
    type text NOT NULL,
    at double precision NOT NULL,
    epoch bigint NOT NULL,
    step text,
    agent text,
    data text NOT NULL
);
CREATE TABLE public.run_tasks (
    run_id text NOT NULL,
    task text NOT NULL,
    attempt bigint NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    agent text,
    step text,
    status text NOT NULL,
    created_at double precision NOT NULL,
    ended_at double precision,
    detail text,
    CONSTRAINT run_tasks_status_check CHECK ((status = ANY (ARRAY['completed'::text, 'paused'::text, 'running'::text, 'pending'::text, 'skipped'::text, 'failed'::text, 'cancelled'::text])))
);
CREATE TABLE public.runs (
    id text NOT NULL,
    project text NOT NULL,
    key_id text NOT NULL,
    kind text NOT NULL,
    agent text NOT NULL,
    parent text,
    end_user text,
    created_at double precision NOT NULL,
    metadata text,
    idempotency_key text,
    digest bytea,
    status text NOT NULL,
    waiting_for text,
    children text,
    pausing boolean NOT NULL,
    last_seq bigint NOT NULL,
    epoch bigint NOT NULL,
    owner text,
    lease_until double precision,
    wake_at double precision,
    updated_at double precision NOT NULL,
    ended_at double precision,
    turns bigint NOT NULL,
    tool_calls bigint NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cost_nano bigint NOT NULL,
    summary text,
    swept boolean NOT NULL
);
CREATE TABLE public.stream_tokens (
    digest bytea NOT NULL,
    run_id text NOT NULL,
    expires_at double precision NOT NULL
);
CREATE TABLE public.threads (
    id text NOT NULL,
    project text NOT NULL,
    used_at double precision NOT NULL
);
INSERT INTO public.accounts VALUES ('key_1', 20000, 600, 600, 600, 500, 1, '\x');
INSERT INTO public.attempts VALUES (1, 1, 'att_000000000000000000000006', 'first', 1728043200, 20000, 'openai', 'gpt', 'openai-responses', 10, 100, 1000, 't1', 1728043260, 'completed', 'provider', 1728043200, 10, 20, NULL, NULL, NULL, 600, 600, 0, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.attempts VALUES (2, 1, 'att_000000000000000000000008', 'first', 1728043200, 20000, 'openai', 'gpt', 'openai-responses', 10, 100, 500, 't1', 1728043260, 'open', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.conversations VALUES ('conv_old', 'p', 1728043200, 1728043200, '{"k":"v"}', NULL, NULL);
INSERT INTO public.counters VALUES ('probe', 0);
INSERT INTO public.counters VALUES ('keys_version', 1);
INSERT INTO public.counters VALUES ('prompts_version', 0);
INSERT INTO public.idempotency VALUES ('p1', 'key-1', '\x0102', 'req_1', 1728043201, 1790000060, 200, '{"content-type":"application/json"}', '\x007b7dff');
INSERT INTO public.items VALUES ('resp_old', 'input', 0, 'msg_resp_old-in', 'p', '{"role":"user","content":"resp_old-in"}');
INSERT INTO public.items VALUES ('resp_old', 'output', 0, 'msg_resp_old-out', 'p', '{"role":"user","content":"resp_old-out"}');
INSERT INTO public.items VALUES ('conv_old', 'conversation', 0, 'msg_old', 'p', '{"role":"user","content":"old"}');
INSERT INTO public.keys VALUES ('key_old', 'old', '\x6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f', 'caller', 'default', 1, NULL, '{"rpm":5}', NULL, NULL, NULL);
INSERT INTO public.migrations VALUES (1, 'ledger', '2e6ef6d56356f569b7784e9962f26100284712d5541dc3bf38727b0b1b56e3a0');
INSERT INTO public.migrations VALUES (2, 'responses', 'bbc7890d491418541e3565a9c6fce97c879da2500347f931171f907d6e69a1b5');
INSERT INTO public.migrations VALUES (3, 'idempotency', 'b6a5e28aa0ace569b821f67b3d51fe54f24887bc419a54a9ba327035627ebb11');
INSERT INTO public.migrations VALUES (4, 'runs', '727aa016660fc570ce2be54043ea992487be68fddc9456a521d1f181e4663fc0');
INSERT INTO public.migrations VALUES (5, 'prompts', '718b3739aca09b5031a03174a807cd6c4145b695f95163f3714474445bc09386');
INSERT INTO public.migrations VALUES (6, 'seals', '96e160ab4ccd3a2fa91df0c03d556b49530e110a0b4492d70d4b58d7414eeae1');
INSERT INTO public.migrations VALUES (7, 'runs_listing', '03ec0ee58aca5e0a2f2505d65aa5fbb2746a54d39385f71a48c6d1fb84332a4b');
INSERT INTO public.migrations VALUES (8, 'plain_checks', 'aa3847c19611bce93dc95b1dd782696949a85ad5f1f65b6775acfaa023b327e3');
INSERT INTO public.prompt_labels VALUES ('support', 'production', 1);
INSERT INTO public.prompts VALUES ('support', 1, 'a', 1000, '{"system":"old"}');
INSERT INTO public.requests OVERRIDING SYSTEM VALUE VALUES (1, 'req_000000000000000000000005', 1728043200, 'default', 'key_1', 'dev', 'smart', 'openai-chat', false, 'abc', 'ann', NULL, NULL, NULL, NULL, NULL, 'completed', 200, NULL, NULL, 1, NULL, 1728043200, 1728043260, true);
INSERT INTO public.requests OVERRIDING SYSTEM VALUE VALUES (2, 'req_000000000000000000000007', 1728043200, 'default', 'key_1', 'dev', 'smart', 'openai-chat', false, 'abc', NULL, NULL, 'p1', NULL, NULL, NULL, 'open', NULL, NULL, NULL, NULL, NULL, NULL, 1728043260, true);
INSERT INTO public.responses VALUES ('resp_old', 'p', 'resp_old', NULL, NULL, 1000, NULL, '{"id":"resp_old","output":[]}');
INSERT INTO public.rollups VALUES (20000, 'default', 'key_1', 'smart', 'openai', 'gpt', '', 'dev', 1, 1, 0, 0, 0, 0, 10, 20, 0, 0, 0, 600, 0, 0);
INSERT INTO public.run_events VALUES ('run_old', 1, 'model.started', 1728043201, 0, 'main/1', 'helper', '{}');
INSERT INTO public.run_events VALUES ('run_old', 2, 'model.started', 1728043202, 0, 'main/1', 'helper', '{}');
INSERT INTO public.runs VALUES ('run_old', 'p1', 'key_1', 'agent', 'helper', NULL, NULL, 1728043200, NULL, NULL, NULL, 'running', NULL, NULL, false, 2, 0, NULL, NULL, NULL, 1728043202, NULL, 0, 0, 0, 0, 0, '{}', false);
INSERT INTO public.threads VALUES ('resp_old', 'p', 1000);
SELECT pg_catalog.setval('public.requests_seq_seq', 2, true);
ALTER TABLE ONLY public.accounts
    ADD CONSTRAINT accounts_pkey PRIMARY KEY (key_id);
ALTER TABLE ONLY public.agents
    ADD CONSTRAINT agents_pkey PRIMARY KEY (project, name, version);
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT attempts_pkey PRIMARY KEY (request_seq, number);
ALTER TABLE ONLY public.conversations
    ADD CONSTRAINT conversations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.counters
    ADD CONSTRAINT counters_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.idempotency
    ADD CONSTRAINT idempotency_pkey PRIMARY KEY (project, key);
ALTER TABLE ONLY public.items
    ADD CONSTRAINT items_pkey PRIMARY KEY (owner, direction, place);
ALTER TABLE ONLY public.keys
    ADD CONSTRAINT keys_digest_key UNIQUE (digest);
ALTER TABLE ONLY public.keys
    ADD CONSTRAINT keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.prompt_labels
    ADD CONSTRAINT prompt_labels_pkey PRIMARY KEY (name, label);
ALTER TABLE ONLY public.prompts
    ADD CONSTRAINT prompts_pkey PRIMARY KEY (name, version);
ALTER TABLE ONLY public.requests
    ADD CONSTRAINT requests_id_key UNIQUE (id);
ALTER TABLE ONLY public.requests
    ADD CONSTRAINT requests_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.responses
    ADD CONSTRAINT responses_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.rollups
    ADD CONSTRAINT rollups_pkey PRIMARY KEY (day, project, key_id, alias, provider, model, prompt);
ALTER TABLE ONLY public.run_events
    ADD CONSTRAINT run_events_pkey PRIMARY KEY (run_id, seq);
ALTER TABLE ONLY public.run_tasks
    ADD CONSTRAINT run_tasks_pkey PRIMARY KEY (run_id, task, attempt);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.stream_tokens
    ADD CONSTRAINT stream_tokens_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY public.threads
    ADD CONSTRAINT threads_pkey PRIMARY KEY (id);
CREATE UNIQUE INDEX attempts_open ON public.attempts USING btree (id) WHERE (status = 'open'::text);
CREATE INDEX conversations_used ON public.conversations USING btree (used_at);
CREATE INDEX idempotency_at ON public.idempotency USING btree (at);
CREATE INDEX idempotency_request ON public.idempotency USING btree (request_id);
CREATE INDEX items_id ON public.items USING btree (id);
CREATE INDEX requests_end_user ON public.requests USING btree (end_user) WHERE (end_user IS NOT NULL);
CREATE INDEX requests_open ON public.requests USING btree (lease_until) WHERE (status = 'open'::text);
CREATE INDEX responses_conversation ON public.responses USING btree (conversation) WHERE (conversation IS NOT NULL);
CREATE INDEX responses_end_user ON public.responses USING btree (end_user) WHERE (end_user IS NOT NULL);
CREATE INDEX responses_thread ON public.responses USING btree (thread);
CREATE INDEX runs_children ON public.runs USING btree (id) WHERE (children IS NOT NULL);
CREATE INDEX runs_ended ON public.runs USING btree (ended_at) WHERE (ended_at IS NOT NULL);
CREATE UNIQUE INDEX runs_idempotency ON public.runs USING btree (project, idempotency_key) WHERE (idempotency_key IS NOT NULL);
CREATE INDEX runs_listing ON public.runs USING btree (project, created_at, id);
CREATE INDEX runs_leased ON public.runs (owner) WHERE lease_until IS NOT NULL;
CREATE INDEX runs_status ON public.runs (project, status, created_at, id);
CREATE INDEX runs_agent ON public.runs (project, agent, created_at, id);
CREATE INDEX runs_parent ON public.runs (parent, created_at, id) WHERE parent IS NOT NULL;
CREATE INDEX runs_wake ON public.runs USING btree (wake_at) WHERE (wake_at IS NOT NULL);
CREATE INDEX runs_work ON public.runs USING btree (created_at) WHERE (status = ANY (ARRAY['queued'::text, 'running'::text, 'cancelling'::text]));
CREATE INDEX stream_tokens_expiry ON public.stream_tokens USING btree (expires_at);
CREATE INDEX threads_used ON public.threads USING btree (used_at);
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT attempts_request_seq_fkey FOREIGN KEY (request_seq) REFERENCES public.requests(seq);
ALTER TABLE ONLY public.prompt_labels
    ADD CONSTRAINT prompt_labels_name_version_fkey FOREIGN KEY (name, version) REFERENCES public.prompts(name, version);
ALTER TABLE ONLY public.responses
    ADD CONSTRAINT responses_thread_fkey FOREIGN KEY (thread) REFERENCES public.threads(id);
CREATE TABLE public.seals (
    digest   BYTEA PRIMARY KEY,
    provider TEXT NOT NULL,
    family   TEXT NOT NULL,
    at       DOUBLE PRECISION NOT NULL
);
CREATE INDEX seals_at ON public.seals (at);
INSERT INTO public.seals VALUES ('\x5ea1', 'anthropic', 'claude', 1728000000);
