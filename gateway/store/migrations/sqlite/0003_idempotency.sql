-- Answers kept under a caller's Idempotency-Key: content at rest, for a day.
-- A row without a status is a claim: its call is under way until held_until at the latest.

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
CREATE INDEX idempotency_at ON idempotency (at);
CREATE INDEX idempotency_request ON idempotency (request_id);
