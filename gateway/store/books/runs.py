"""Runs, their events and tasks; the agents that callers define; stream tokens.

Every write is a script of :mod:`gateway.store.books.responses`: its first statement is the
condition, so an addition is one compare-and-set in both databases.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from adapters.canonical.faults import Fault
from adapters.wire.json import dumps, loads
from gateway.store import runs as kept
from gateway.store.books import Apply, Database
from gateway.store.books.responses import Script
from gateway.store.runs import (
    Addition,
    AgentRow,
    Birth,
    CallsUsage,
    EventRow,
    RunQuery,
    RunRow,
    TaskRow,
)
from gateway.store.sql import assignments, columns, insert

_WORK = "status IN ('queued', 'running', 'cancelling')"

_CREATE = (
    insert("runs", [*kept.BIRTH, *kept.STANDING, *kept.CLAIM, "swept"]) + " ON CONFLICT DO NOTHING"
)
_MOVE = f"""UPDATE runs SET {assignments(kept.STANDING)},
    pausing = (pausing AND ? IN ('running', 'waiting'))
    WHERE id = ? AND last_seq = ? AND epoch = ?"""  # noqa: S608
_GROW = "UPDATE runs SET last_seq = ?, updated_at = ? WHERE id = ? AND last_seq = ? AND epoch = ?"
_ADD_EVENT = insert("run_events", kept.EVENT)
_PUT_TASK = (
    insert("run_tasks", kept.TASK)
    + " ON CONFLICT (run_id, task, attempt) DO UPDATE SET status = excluded.status, "
    + "ended_at = excluded.ended_at, detail = coalesce(excluded.detail, run_tasks.detail)"
)

_RUN = "SELECT * FROM runs WHERE id = ?"
_OF_KEY = "SELECT * FROM runs WHERE project = ? AND idempotency_key = ?"
_TWIN = "SELECT * FROM runs WHERE id = ? OR (project = ? AND idempotency_key = ?)"
_EVENTS = f"SELECT {columns(kept.EVENT)} FROM run_events WHERE "  # noqa: S608
_REACHED = """ AND seq <= (SELECT max(seq) FROM
    (SELECT seq, sum(size) OVER (ORDER BY seq) - size AS before FROM
        (SELECT seq, length(data) AS size FROM run_events WHERE {where} ORDER BY seq LIMIT ?)
    AS page) AS summed WHERE before < ?) ORDER BY seq"""
_TASKS = f"""SELECT {columns(kept.TASK)} FROM run_tasks WHERE run_id = ?
    ORDER BY created_at, task, attempt"""  # noqa: S608

_FREE = f"""SELECT * FROM runs WHERE {_WORK} AND (lease_until IS NULL OR lease_until < ?)
    ORDER BY created_at LIMIT ?"""  # noqa: S608
_PARENTS = """SELECT * FROM runs WHERE children IS NOT NULL AND status = 'waiting'
    AND (lease_until IS NULL OR lease_until < ?) AND EXISTS
        (SELECT 1 FROM runs AS c WHERE c.parent = runs.id AND c.ended_at IS NOT NULL
            AND runs.children LIKE '%' || c.id || '%')
    LIMIT ?"""
_CLAIM = """UPDATE runs SET owner = ?, lease_until = ?, epoch = epoch + 1
    WHERE id = ? AND epoch = ? AND (lease_until IS NULL OR lease_until < ?)"""
_RENEW = """UPDATE runs SET lease_until = ?
    WHERE owner = ? AND lease_until IS NOT NULL AND id IN ({marks})"""
_HELD = "SELECT id FROM runs WHERE owner = ? AND lease_until IS NOT NULL"
_RELEASE = "UPDATE runs SET lease_until = NULL, owner = NULL WHERE id = ? AND epoch = ?"
_FREE_ALL = "UPDATE runs SET lease_until = 0 WHERE lease_until IS NOT NULL"
_DUE = "SELECT id FROM runs WHERE wake_at <= ? ORDER BY wake_at LIMIT ?"
_PAUSING = "UPDATE runs SET pausing = ? WHERE id = ? AND status IN ('running', 'waiting')"

CALLS = "SELECT seq FROM requests WHERE id IN ({marks})"
USAGE = """SELECT coalesce(sum(a.input_tokens), 0) AS input_tokens,
    coalesce(sum(a.output_tokens), 0) AS output_tokens,
    coalesce(sum(coalesce(a.charged_nano, a.reserved_nano)), 0) AS cost_nano
    FROM attempts AS a WHERE a.request_seq IN ({marks})"""

_DELETE_EVENTS = "DELETE FROM run_events WHERE run_id = ?"
_DELETE_TASKS = "DELETE FROM run_tasks WHERE run_id = ?"
_DELETE_TOKENS = "DELETE FROM stream_tokens WHERE run_id = ?"
_DELETE_RUN = "DELETE FROM runs WHERE id = ?"
_EMPTY = "UPDATE runs SET swept = TRUE, summary = NULL, metadata = NULL WHERE id = ?"

OLD_RUNS = "SELECT id FROM runs WHERE ended_at < ? AND NOT swept LIMIT ?"
EMPTY_RUN = (_DELETE_EVENTS, _DELETE_TASKS, _DELETE_TOKENS, _EMPTY)
"""A run past its retention leaves its row, so that a reader hears that it is gone."""
OLD_STUBS = "SELECT id FROM runs WHERE ended_at < ? AND swept LIMIT ?"
DELETE_RUN = (_DELETE_EVENTS, _DELETE_TASKS, _DELETE_TOKENS, _DELETE_RUN)

FORGETTING: tuple[str, Mapping[str, str], Sequence[str]] = (
    "SELECT id FROM runs WHERE ended_at IS NOT NULL",
    {"project": "project = ?", "end_user": "end_user = ?"},
    DELETE_RUN,
)
"""As in :mod:`gateway.store.books.responses`."""

_ADD_AGENT = insert("agents", ["project", "name", "version", "created_at", "spec", "deleted"])
_AGENT = "SELECT * FROM agents WHERE project = ? AND name = ?"
_AGENTS = """SELECT * FROM agents AS a WHERE project = ? AND NOT deleted AND version =
    (SELECT max(version) FROM agents AS b WHERE b.project = a.project AND b.name = a.name)
    ORDER BY name"""
_DROP_AGENT = "UPDATE agents SET deleted = TRUE WHERE project = ? AND name = ? AND NOT deleted"
_ADD_TOKEN = insert("stream_tokens", ["digest", "run_id", "expires_at"])
_OLD_TOKENS = "DELETE FROM stream_tokens WHERE expires_at < ?"
_TOKEN = "SELECT run_id FROM stream_tokens WHERE digest = ? AND expires_at > ?"  # noqa: S105


class RunsBook(ABC):
    """See :class:`gateway.store.runs.RunBook`."""

    _db: Database

    run_script: Apply
    """Takes a script."""

    @abstractmethod
    def _tell(self, run_id: str) -> Script:
        """What calls out to other processes that the run has news; nothing where that can't be."""

    async def create_run(
        self, birth: Birth, first: Addition, owner: str | None, lease_until: float | None
    ) -> RunRow | None:
        assert first.standing is not None
        values = (
            *kept.birth_values(birth),
            *kept.standing_values(first.standing),
            *(False, first.epoch, owner, lease_until),
            False,
        )
        script: Script = ((_CREATE, [values]), *_contents(first), *self._tell(birth.id))
        if await self._run(script):
            return None
        key = birth.idempotency_key
        rows = await self._db.read(_TWIN, (birth.id, birth.project, key))
        return kept.run_row(rows[0]) if rows else None

    async def add_run_events(self, addition: Addition) -> bool:
        where = (addition.run_id, addition.after, addition.epoch)
        standing, last = addition.standing, addition.events[-1]
        if standing is None:
            first = (_GROW, [(last.seq, last.at, *where)])
        else:
            first = (_MOVE, [(*kept.standing_values(standing), standing.status, *where)])
        return await self._run((first, *_contents(addition), *self._tell(addition.run_id)))

    async def run(self, run_id: str, project: str | None = None) -> RunRow | None:
        rows = await self._db.read(_RUN, (run_id,))
        if not rows or (project is not None and rows[0]["project"] != project):
            return None
        return kept.run_row(rows[0])

    async def run_of_key(self, project: str, key: str) -> RunRow | None:
        rows = await self._db.read(_OF_KEY, (project, key))
        return kept.run_row(rows[0]) if rows else None

    async def runs(self, query: RunQuery) -> list[RunRow]:
        asked = {"status": query.status, "agent": query.agent, "parent": query.parent}
        wanted = {name: value for name, value in asked.items() if value is not None}
        conditions = ["project = ?", *(f"{name} = ?" for name in wanted)]
        values: list[Any] = [query.project, *wanted.values()]
        if query.before is not None:
            conditions.append("(created_at, id) < (SELECT created_at, id FROM runs WHERE id = ?)")
            values.append(query.before)
        rows = await self._db.read(
            f"SELECT * FROM runs WHERE {' AND '.join(conditions)} "  # noqa: S608
            "ORDER BY created_at DESC, id DESC LIMIT ?",
            (*values, query.limit),
        )
        return [kept.run_row(row) for row in rows]

    async def run_events(
        self,
        run_id: str,
        after: int,
        limit: int,
        *,
        leave_out: Sequence[str] = (),
        max_bytes: int | None = None,
    ) -> list[EventRow]:
        where, values = "run_id = ? AND seq > ?", [run_id, after, *leave_out]
        if leave_out:
            where += f" AND type NOT IN ({columns('?' * len(leave_out))})"
        if max_bytes is None:
            statement, values = f"{_EVENTS}{where} ORDER BY seq LIMIT ?", [*values, limit]
        else:
            statement = f"{_EVENTS}{where}{_REACHED.format(where=where)}"
            values = [*values, *values, limit, max_bytes]
        return [EventRow(**row) for row in await self._db.read(statement, values)]

    async def run_tasks(self, run_id: str) -> list[TaskRow]:
        return [TaskRow(**row) for row in await self._db.read(_TASKS, (run_id,))]

    async def delete_run(self, run_id: str) -> None:
        first, *rest = reversed(DELETE_RUN)
        await self._run(((first, [(run_id,)]), *((one, [(run_id,)]) for one in rest)))

    # claims

    async def claim_runs(
        self, owner: str, now: float, lease_until: float, limit: int
    ) -> list[RunRow]:
        rows = await self._db.read(_FREE, (now, limit))
        if len(rows) < limit:
            rows += await self._db.read(_PARENTS, (now, limit - len(rows)))
        claims = await asyncio.gather(
            *(self.claim_run(kept.run_row(row), owner, now, lease_until) for row in rows),
            return_exceptions=True,
        )
        claimed = [row for row in claims if isinstance(row, RunRow)]
        errors = [error for error in claims if isinstance(error, BaseException)]
        for error in errors:
            if not claimed or not isinstance(error, Fault):
                raise error
        return claimed

    async def claim_run(
        self, row: RunRow, owner: str, now: float, lease_until: float
    ) -> RunRow | None:
        values = (owner, lease_until, row.birth.id, row.epoch, now)
        claimed = await self._run(((_CLAIM, [values]),))
        return replace(row, epoch=row.epoch + 1) if claimed else None

    async def renew_runs(
        self, owner: str, run_ids: Collection[str], lease_until: float
    ) -> list[str]:
        statement = _RENEW.format(marks=columns("?" * len(run_ids)))
        await self._run(((statement, [(lease_until, owner, *run_ids)]),), "normal")
        return [row["id"] for row in await self._db.read(_HELD, (owner,))]

    async def release_run(self, run_id: str, epoch: int) -> None:
        await self._run(((_RELEASE, [(run_id, epoch)]),), "normal")

    async def free_runs(self) -> None:
        await self._run(((_FREE_ALL, [()]),))

    async def due_runs(self, now: float, limit: int) -> list[str]:
        return [row["id"] for row in await self._db.read(_DUE, (now, limit))]

    async def set_pausing(self, run_id: str, pausing: bool) -> None:
        await self._run(((_PAUSING, [(pausing, run_id)]),))

    async def calls_usage(self, request_ids: Sequence[str]) -> CallsUsage:
        # SQLite shows attempts in a view, and finds some in its parts by numbers that it is given,
        # not by a join.
        places = await self._marked(CALLS, request_ids)
        if not places:
            return CallsUsage(0, 0, 0)
        (row,) = await self._marked(USAGE, [place["seq"] for place in places])
        return CallsUsage(
            int(row["input_tokens"]), int(row["output_tokens"]), int(row["cost_nano"])
        )

    async def _marked(self, statement: str, values: Sequence[Any]) -> list[dict[str, Any]]:
        """Read with a list of values in place of ``{marks}``; nothing, where there are none."""
        if not values:
            return []
        return await self._db.read(statement.format(marks=columns("?" * len(values))), values)

    # agents and stream tokens

    async def put_agent(self, row: AgentRow) -> bool:
        spec = dumps(row.spec).decode()
        values = (row.project, row.name, row.version, row.created_at, spec, row.deleted)
        return await self._run(((f"{_ADD_AGENT} ON CONFLICT DO NOTHING", [values]),))

    async def agent(self, project: str, name: str, version: int | None) -> AgentRow | None:
        which, values = ("", ()) if version is None else (" AND version = ?", (version,))
        rows = await self._db.read(
            f"{_AGENT}{which} ORDER BY version DESC LIMIT 1", (project, name, *values)
        )
        return _agent_row(rows[0]) if rows else None

    async def agents(self, project: str) -> list[AgentRow]:
        return [_agent_row(row) for row in await self._db.read(_AGENTS, (project,))]

    async def delete_agent(self, project: str, name: str) -> bool:
        return await self._run(((_DROP_AGENT, [(project, name)]),))

    async def add_stream_token(
        self, digest: bytes, run_id: str, now: float, expires_at: float
    ) -> None:
        add = (_ADD_TOKEN, [(digest, run_id, expires_at)])
        await self._run((add, (_OLD_TOKENS, [(now,)])))

    async def stream_token(self, digest: bytes, now: float) -> str | None:
        rows = await self._db.read(_TOKEN, (digest, now))
        return str(rows[0]["run_id"]) if rows else None

    async def _run(self, script: Script, durability: Any = "full") -> bool:
        met: bool = await self._db.write(self.run_script, script, durability)
        return met


def _contents(addition: Addition) -> Script:
    return ((_ADD_EVENT, addition.events), (_PUT_TASK, addition.tasks))


def _agent_row(row: Mapping[str, Any]) -> AgentRow:
    return AgentRow(
        row["project"],
        row["name"],
        row["version"],
        row["created_at"],
        loads(row["spec"]),
        bool(row["deleted"]),
    )
