"""What waits for a writer, and how its caller hears of the outcome.

Both writers take jobs, commit whatever is queued as one group, and answer after the commit.
Knows no database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Literal

from adapters.canonical.record import record

Durability = Literal["normal", "full"]
"""What a commit survives: ``normal`` the death of the gateway, ``full`` a power cut."""

Committed = Callable[[int, float], None]
"""Told of every committed group: entries and seconds."""

GROUP = 256
"""Jobs in one transaction at most."""
QUEUE = 20_000
"""Jobs that may wait; beyond it, what need not be written is refused."""
PATIENCE = 5.0
"""Seconds after which the caller of a ``must`` job hears that the store is unavailable, while
the job itself goes on waiting."""
PAUSE = 0.25
"""Seconds between two tries of what could not be written."""


class Lasting(asyncio.Future[Any]):
    """The outcome of what must be written. Who is cancelled while waiting for it hears of that
    when it is written, or :data:`PATIENCE` later: a task whose wait can't be cancelled is told
    after it (fault kind K19)."""

    def cancel(self, msg: Any | None = None) -> bool:
        """Not now."""
        if not self.done():
            self.get_loop().call_later(PATIENCE, super().cancel, msg)
        return False


@record(slots=True, eq=False)
class Job:
    """One entry on its way to the database.

    ``apply`` takes a connection and the entries of a group that share it, and answers each in
    its place. A refusal (a ``Fault``) is an answer: nothing was written for that entry. If an
    ``apply`` raises, the group is rolled back and every job is tried alone.

    ``must``: keep it queued until it is written. ``undo`` makes of it the entry to write later if
    nobody can tell whether this one was committed.
    """

    apply: Callable[..., Any]
    entry: Any
    durability: Durability
    must: bool
    undo: Callable[[Any], Any] | None
    future: asyncio.Future[Any]
    since: float


Outcome = tuple[Job, Any]
"""A job and its answer; an exception is raised to the caller."""


_apply, _durability = attrgetter("apply"), attrgetter("durability")


def parts(group: Sequence[Job]) -> Mapping[Callable[..., Any], Sequence[Job]]:
    """A group's jobs by what applies them, in the order of their first: mostly it is one for
    all."""
    applies = dict.fromkeys(map(_apply, group))
    if len(applies) == 1:
        return {group[0].apply: group}
    return {apply: [job for job in group if job.apply == apply] for apply in applies}


def strictest(group: Iterable[Job]) -> Durability:
    """A group is committed at the strictest need in it."""
    return "full" if "full" in map(_durability, group) else "normal"


def answer(outcomes: Sequence[Outcome]) -> None:
    """Tell the callers; one that has gone, or was told before, hears nothing."""
    for job, result in outcomes:
        future = job.future
        if future.done():
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
