"""The states of a run, and the events that lead from one to the next: one table.

Whatever affects a run's status is a row of :data:`MOVES`. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

Status = Literal[
    "queued",
    "running",
    "waiting",
    "paused",
    "cancelling",
    "completed",
    "failed",
    "incomplete",
    "cancelled",
    "expired",
]

STATUSES: tuple[Status, ...] = get_args(Status)

ENDED: frozenset[str] = frozenset({"completed", "failed", "incomplete", "cancelled", "expired"})
"""No event follows. ``incomplete`` is not ``failed``: a limit ended the run, not a fault."""

WORK: frozenset[str] = frozenset({"queued", "running", "cancelling"})
"""There is something to do: a supervisor may claim the run."""

IDLE: frozenset[str] = frozenset({"queued", "waiting", "paused"})
"""Nothing is done now; staying so for too long expires the run."""

MOVES: Mapping[str, Mapping[str | None, Status]] = {
    "run.created": {None: "queued"},
    "run.started": {"queued": "running", "running": "running"},
    "run.waiting": {"running": "waiting"},
    "run.resumed": {"waiting": "running", "paused": "running"},
    "run.paused": {"queued": "paused", "running": "paused", "waiting": "paused"},
    "run.cancel_requested": {
        "queued": "cancelling",
        "running": "cancelling",
        "waiting": "cancelling",
        "paused": "cancelling",
    },
    "run.recovered": {"running": "running", "cancelling": "cancelling"},
    "run.completed": {"running": "completed"},
    "run.failed": {"running": "failed"},
    "run.incomplete": {"running": "incomplete"},
    "run.cancelled": {"cancelling": "cancelled"},
    "run.expired": {"queued": "expired", "waiting": "expired", "paused": "expired"},
}
"""By event type: from which status to which. ``None`` is before the run exists."""


class Illegal(Exception):
    """An event that the run's status does not allow: a decision that came too late."""


def moved(status: Status | None, type: str) -> Status:
    """The status after an event of ``type``.

    :raises Illegal: the event has no place here.
    """
    moves = MOVES.get(type)
    if moves is not None:
        if status not in moves:
            raise Illegal(f"{type} in a run that is {status}")
        return moves[status]
    if status is None or status in ENDED:
        raise Illegal(f"{type} in a run that is {status}")
    return status
