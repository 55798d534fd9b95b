-- Answers kept under a caller's Idempotency-Key: content at rest, for a day.
-- A row without a status is a claim: its call is under way until held_until at the latest.

CREATE TABLE idempotency (
    project    TEXT NOT NULL,
    key        TEXT NOT NULL,
    digest     BYTEA NOT NULL,
    request_id TEXT NOT NULL,
    at         DOUBLE PRECISION NOT NULL,
    held_until DOUBLE PRECISION NOT NULL,
    status     BIGINT,
    headers    TEXT,
    body       BYTEA,
    PRIMARY KEY (project, key)
);
CREATE INDEX idempotency_at ON idempotency (at);
CREATE INDEX idempotency_request ON idempotency (request_id);
