"""Runs in the books: what the rest of the house may ask about them.

A run is one row that says where it stands, and its events, which say why. Both change in one
transaction, and only if nobody else has added an event meanwhile; so the books keep ``seq``
gapless and the row true without knowing what an event means. Runs belong to a project; a run of
another project is simply not found.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple, Protocol

from adapters.canonical.record import record
from adapters.wire.json import dumps, loads

BIRTH = [
    "id",
    "project",
    "key_id",
    "kind",
    "agent",
    "parent",
    "end_user",
    "created_at",
    "metadata",
    "idempotency_key",
    "digest",
]
"""Columns of ``runs`` that never change."""
STANDING = [
    "status",
    "waiting_for",
    "children",
    "last_seq",
    "wake_at",
    "updated_at",
    "ended_at",
    "turns",
    "tool_calls",
    "input_tokens",
    "output_tokens",
    "cost_nano",
    "summary",
]
"""Columns that every event but a delta rewrites."""
CLAIM = ["pausing", "epoch", "owner", "lease_until"]
"""Columns that belong to whoever works on the run."""
EVENT = ["run_id", "seq", "type", "at", "epoch", "step", "agent", "data"]
TASK = [
    "run_id",
    "task",
    "attempt",
    "kind",
    "name",
    "agent",
    "step",
    "status",
    "created_at",
    "ended_at",
    "detail",
]


@record(frozen=True, slots=True)
class Birth:
    """What a run is from its beginning. ``digest`` is of the request that ``idempotency_key``
    belongs to; ``agent`` is the name of what runs."""

    id: str
    project: str
    key_id: str
    kind: str
    agent: str
    created_at: float
    parent: str | None = None
    end_user: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    idempotency_key: str | None = None
    digest: bytes | None = None


@record(frozen=True, slots=True)
class Standing:
    """Where a run stands after its event ``last_seq``.

    ``wake_at`` is when somebody has to look at it although nothing happens; ``children`` are
    runs whose end lets it go on. ``summary`` is what a reader of the run is shown.
    """

    status: str
    last_seq: int
    updated_at: float
    waiting_for: str | None = None
    children: Sequence[str] = ()
    wake_at: float | None = None
    ended_at: float | None = None
    turns: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_nano: int = 0
    summary: Mapping[str, Any] = field(default_factory=dict)


@record(frozen=True, slots=True)
class RunRow:
    """A run as the books hold it. ``swept``: past its retention, its content is gone."""

    birth: Birth
    standing: Standing
    pausing: bool
    epoch: int
    owner: str | None
    lease_until: float | None
    swept: bool = False


class EventRow(NamedTuple):
    """One event; ``data`` is its JSON text."""

    run_id: str
    seq: int
    type: str
    at: float
    epoch: int
    step: str | None
    agent: str | None
    data: str


class TaskRow(NamedTuple):
    """One try of one piece of work; ``detail`` is JSON text."""

    run_id: str
    task: str
    attempt: int
    kind: str
    name: str
    agent: str | None
    step: str | None
    status: str
    created_at: float
    ended_at: float | None
    detail: str | None


@record(frozen=True, slots=True)
class Addition:
    """Events to add after ``after``, and where the run stands with them.

    ``standing`` is ``None`` for deltas alone. ``epoch`` is the claim under which they are written:
    of a later one, nothing is.
    """

    run_id: str
    after: int
    epoch: int
    events: Sequence[EventRow]
    standing: Standing | None
    tasks: Sequence[TaskRow] = ()


@record(frozen=True, slots=True)
class RunQuery:
    """Which runs of a project to list, newest first; ``before`` is the id that the last page
    ended with."""

    project: str
    status: str | None = None
    agent: str | None = None
    parent: str | None = None
    before: str | None = None
    limit: int = 20


class AgentRow(NamedTuple):
    """One version of an agent that a caller defined."""

    project: str
    name: str
    version: int
    created_at: float
    spec: Mapping[str, Any]
    deleted: bool = False


class CallsUsage(NamedTuple):
    """Sums over calls; a price that is not known counts what was charged in its place, and an
    attempt that is still open what it has reserved: so much is charged if nobody settles it."""

    input_tokens: int
    output_tokens: int
    cost_nano: int


Heard = Callable[[str, bool], None]
"""Told the id of a run that has news (an empty one stands for any), and whether it, or a run that
waits for it, may be taken up now."""


class RunBook(Protocol):
    """The part of the store that keeps runs. Events are always written in full: a confirmed
    event survives a power cut."""

    async def create_run(
        self, birth: Birth, first: Addition, owner: str | None, lease_until: float | None
    ) -> RunRow | None:
        """Write a run with its first events.

        :param owner: who works on it from the start, or nobody.
        :returns: the run that has this idempotency key (or this id) already; ``None`` if it is
            written.
        """
        ...

    async def add_run_events(self, addition: Addition) -> bool:
        """Write the events if the run still ends at ``addition.after`` under this epoch, and
        answer whether it did."""
        ...

    async def run(self, run_id: str, project: str | None = None) -> RunRow | None:
        """The run, of whichever project where none is named."""
        ...

    async def run_of_key(self, project: str, key: str) -> RunRow | None:
        """The run that was begun under an idempotency key."""
        ...

    async def runs(self, query: RunQuery) -> list[RunRow]:
        """Runs of a project, newest first."""
        ...

    async def run_events(
        self,
        run_id: str,
        after: int,
        limit: int,
        *,
        leave_out: Sequence[str] = (),
        max_bytes: int | None = None,
    ) -> list[EventRow]:
        """Events beyond ``after``, in order; types in ``leave_out`` are not read. With
        ``max_bytes``, the event whose data reaches so many in sum is the last."""
        ...

    async def run_tasks(self, run_id: str) -> list[TaskRow]:
        """Every try of every task, in the order in which they came up."""
        ...

    async def delete_run(self, run_id: str) -> None:
        """Delete the run and all that belongs to it."""
        ...

    # claims

    async def claim_runs(
        self, owner: str, now: float, lease_until: float, limit: int
    ) -> list[RunRow]:
        """Take runs that have work and no living owner, oldest first, as many as can be taken. The
        rows have the new epoch, but the owner and the lease of before. :raises Fault: if none can.
        """
        ...

    async def claim_run(
        self, row: RunRow, owner: str, now: float, lease_until: float
    ) -> RunRow | None:
        """Take this run, if it is as it was read and nobody alive has it; the row as above."""
        ...

    async def renew_runs(
        self, owner: str, run_ids: Collection[str], lease_until: float
    ) -> list[str]:
        """Keep those of ``owner``'s claims that are worked under; the ids of all that it holds.
        Others end by themselves: it may have more than it has heard of."""
        ...

    async def release_run(self, run_id: str, epoch: int) -> None:
        """Give a claim back; nothing if it is another's by now."""
        ...

    async def free_runs(self) -> None:
        """Give all claims back: for a process that knows that nobody else works."""
        ...

    async def due_runs(self, now: float, limit: int) -> list[str]:
        """Runs whose ``wake_at`` has come."""
        ...

    async def set_pausing(self, run_id: str, pausing: bool) -> None:
        """Ask whoever works on the run to pause it at its next border, or no more."""
        ...

    async def runs_version(self) -> int:
        """Differs from the last answer if another process may have added events that
        :meth:`hear_runs` has not told of."""
        ...

    async def hear_runs(self, heard: Heard) -> None:
        """Tell at once of what other processes write, until cancelled. Ends at once where the store
        can't; then :meth:`runs_version` is all there is."""
        ...

    async def calls_usage(self, request_ids: Sequence[str]) -> CallsUsage:
        """What these calls have used, all their attempts together."""
        ...

    # agents and stream tokens

    async def put_agent(self, row: AgentRow) -> bool:
        """Add a version; ``False`` if it exists."""
        ...

    async def agent(self, project: str, name: str, version: int | None) -> AgentRow | None:
        """A version of an agent, by default the newest; a deleted one is found, and says so."""
        ...

    async def agents(self, project: str) -> list[AgentRow]:
        """The newest version of each agent that is not deleted."""
        ...

    async def delete_agent(self, project: str, name: str) -> bool:
        """Mark all versions as deleted; runs that use it go on."""
        ...

    async def add_stream_token(
        self, digest: bytes, run_id: str, now: float, expires_at: float
    ) -> None:
        """Keep a token's digest; those that have expired by ``now`` are dropped."""
        ...

    async def stream_token(self, digest: bytes, now: float) -> str | None:
        """The run that a token opens."""
        ...


# rows to values and back


def birth_values(birth: Birth) -> tuple[Any, ...]:
    """The values of :data:`BIRTH`."""
    metadata = dumps(birth.metadata).decode() if birth.metadata else None
    return (
        birth.id,
        birth.project,
        birth.key_id,
        birth.kind,
        birth.agent,
        birth.parent,
        birth.end_user,
        birth.created_at,
        metadata,
        birth.idempotency_key,
        birth.digest,
    )


def standing_values(standing: Standing) -> tuple[Any, ...]:
    """The values of :data:`STANDING`."""
    children = dumps(list(standing.children)).decode() if standing.children else None
    return (
        standing.status,
        standing.waiting_for,
        children,
        standing.last_seq,
        standing.wake_at,
        standing.updated_at,
        standing.ended_at,
        standing.turns,
        standing.tool_calls,
        standing.input_tokens,
        standing.output_tokens,
        standing.cost_nano,
        dumps(standing.summary).decode(),
    )


def run_row(row: Mapping[str, Any]) -> RunRow:
    """From a row with all columns of ``runs``."""
    birth = {name: row[name] for name in BIRTH}
    standing = {name: row[name] for name in STANDING}
    birth["metadata"] = _json(row["metadata"], {})
    birth["digest"] = None if row["digest"] is None else bytes(row["digest"])
    standing["children"] = _json(row["children"], ())
    standing["summary"] = _json(row["summary"], {})
    return RunRow(
        birth=Birth(**birth),
        standing=Standing(**standing),
        pausing=bool(row["pausing"]),
        epoch=row["epoch"],
        owner=row["owner"],
        lease_until=row["lease_until"],
        swept=bool(row["swept"]),
    )


def _json(text: str | None, default: Any) -> Any:
    return default if text is None else loads(text)
