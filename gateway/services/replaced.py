"""What reloads have replaced: closed once nobody can need it, and then gone with its secrets.

A call keeps the runtime that it began with, and with it the connections and the provider keys of
its configuration. As soon as no call holds a runtime any more nothing of it has to stay. Where an
old one is still held after the longest time that its calls may take, it is by accident.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Protocol

from adapters.canonical.record import record
from gateway.flow.context import Runtime

AT_LEAST = 60.0
"""Seconds that a replaced secret stays known to the log's filter: a tool server that a reload took
away may need some to end."""


class Open(Protocol):
    """Something with connections."""

    @property
    def busy(self) -> bool:
        """Whether somebody waits for an answer of it."""
        ...

    async def close(self) -> None:
        """Close them."""
        ...


@record(slots=True)
class _Old:
    """One configuration; monotonic seconds. ``open`` is what its successor had no use for."""

    runtime: weakref.ref[Runtime]
    at: float
    deadline: float
    open: list[Open]
    secrets: tuple[str, ...]

    def over(self, now: float) -> bool:
        """Whether its calls have ended."""
        return self.runtime() is None or now >= self.deadline


class Replaced:
    """The configurations that calls under way may still need, the oldest first.

    :param now: a monotonic clock, in seconds.
    """

    __slots__ = ("_now", "_old")

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._old: list[_Old] = []

    @property
    def secrets(self) -> list[str]:
        """What no log line may show on their account."""
        return [secret for old in self._old for secret in old.secrets]

    def add(self, runtime: Runtime, unused: Iterable[Open], secrets: Iterable[str]) -> None:
        """A reload has taken ``runtime`` out of force, and has no place for ``unused``."""
        now = self._now()
        longest = max((a.deadline for a in runtime.snapshot.aliases.values()), default=0.0)
        ref = weakref.ref(runtime)
        self._old.append(_Old(ref, now, now + longest, list(unused), tuple(secrets)))

    async def close_unneeded(self) -> bool:
        """Close what no call can need.

        :returns: whether there are fewer ``secrets`` now.
        """
        before, now = len(self._old), self._now()
        for old in self._over(now):
            for one in [each for each in old.open if not each.busy]:
                old.open.remove(one)
                await one.close()
            if not old.open and now >= old.at + AT_LEAST:
                self._old.remove(old)
        return len(self._old) < before

    def _over(self, now: float) -> list[_Old]:
        """Those before the first that is still needed: what a later one had no use for may have
        been in use since an earlier one."""
        needed = next((n for n, old in enumerate(self._old) if not old.over(now)), None)
        return self._old[:needed]

    async def close(self) -> None:
        """Close everything: the gateway ends."""
        while self._old:
            for one in self._old.pop().open:
                await one.close()
