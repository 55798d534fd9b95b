-- Who made which sealed reasoning: digests and names, no content.

CREATE TABLE seals (
    digest   BLOB PRIMARY KEY,
    provider TEXT NOT NULL,
    family   TEXT NOT NULL,
    at       REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX seals_at ON seals (at);
