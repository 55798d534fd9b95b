-- Who made which sealed reasoning: digests and names, no content.

CREATE TABLE seals (
    digest   BYTEA PRIMARY KEY,
    provider TEXT NOT NULL,
    family   TEXT NOT NULL,
    at       DOUBLE PRECISION NOT NULL
);
CREATE INDEX seals_at ON seals (at);
