-- However many runs have ended: claims are renewed, and lists filtered, without reading them all.

CREATE INDEX runs_leased ON runs (owner) WHERE lease_until IS NOT NULL;
CREATE INDEX runs_status ON runs (project, status, created_at, id);
CREATE INDEX runs_agent ON runs (project, agent, created_at, id);
DROP INDEX runs_parent;
CREATE INDEX runs_parent ON runs (parent, created_at, id) WHERE parent IS NOT NULL;
