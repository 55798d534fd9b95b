-- Responses and conversations that callers had kept: content at rest.

-- Responses that continue each other are kept, or go, together.
CREATE TABLE threads (
    id      TEXT PRIMARY KEY,
    project TEXT NOT NULL,
    used_at DOUBLE PRECISION NOT NULL
);
CREATE INDEX threads_used ON threads (used_at);

CREATE TABLE responses (
    id           TEXT PRIMARY KEY,
    project      TEXT NOT NULL,
    thread       TEXT NOT NULL REFERENCES threads (id),
    previous     TEXT,
    conversation TEXT,
    at           DOUBLE PRECISION NOT NULL,
    end_user     TEXT,
    body         TEXT NOT NULL
);
CREATE INDEX responses_thread ON responses (thread);
CREATE INDEX responses_end_user ON responses (end_user) WHERE end_user IS NOT NULL;
CREATE INDEX responses_conversation ON responses (conversation) WHERE conversation IS NOT NULL;

CREATE TABLE conversations (
    id         TEXT PRIMARY KEY,
    project    TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    used_at    DOUBLE PRECISION NOT NULL,
    metadata   TEXT NOT NULL,
    held_by    TEXT,
    held_until DOUBLE PRECISION
);
CREATE INDEX conversations_used ON conversations (used_at);

-- Items of responses (input and output) and of conversations; the owner is either's id.
CREATE TABLE items (
    owner     TEXT NOT NULL,
    direction TEXT NOT NULL CHECK (direction IN ('input', 'output', 'conversation')),
    place     BIGINT NOT NULL,
    id        TEXT NOT NULL,
    project   TEXT NOT NULL,
    item      TEXT NOT NULL,
    PRIMARY KEY (owner, direction, place)
);
CREATE INDEX items_id ON items (id);
