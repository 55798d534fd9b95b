-- Prompts made at run time. A version is never changed and never deleted; a label can be moved.

CREATE TABLE prompts (
    name       TEXT NOT NULL,
    version    BIGINT NOT NULL,
    hash       TEXT NOT NULL,
    at         DOUBLE PRECISION NOT NULL,
    definition TEXT NOT NULL,
    PRIMARY KEY (name, version)
);

CREATE TABLE prompt_labels (
    name    TEXT NOT NULL,
    label   TEXT NOT NULL,
    version BIGINT NOT NULL,
    PRIMARY KEY (name, label),
    FOREIGN KEY (name, version) REFERENCES prompts (name, version)
);

INSERT INTO counters (name, value) VALUES ('prompts_version', 0);
