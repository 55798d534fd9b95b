"""The four time-outs of a call on one timer (design section 6).

A stream of a thousand chunks moves its limit a thousand times; arming an event-loop timer for
each would cost more than decoding it. So a limit is only written down, and the one timer that
is armed looks at it when it fires: it ends the call, or sleeps on until the limit as it then
stands. Must not know HTTP.
"""

from __future__ import annotations

import asyncio
from math import inf
from typing import Literal

from adapters.canonical.faults import Fault
from adapters.canonical.record import record

Phase = Literal["pool", "connect", "upload", "first_event", "between_events", "total"]


@record(frozen=True, slots=True)
class _Limit:
    """How a phase that took too long is told. ``phase`` is the time-out's name in the settings.

    ``billed`` is ``False`` where the provider can't have seen the whole request.
    """

    phase: str
    message: str
    code: str | None = None
    billed: bool | None = None


_LIMITS: dict[Phase, _Limit] = {
    "pool": _Limit(
        "connect",
        "All connections of the pool to this provider were busy for the whole connect time-out "
        "({seconds:g} s). Raise the provider's `pool`, or send fewer calls at once.",
        code="connection_pool_full",
        billed=False,
    ),
    "connect": _Limit(
        "connect", "No connection to the provider within {seconds:g} s.", billed=False
    ),
    "upload": _Limit(
        "first_event",
        "The provider did not take the whole request within {seconds:g} s.",
        billed=False,
    ),
    "first_event": _Limit("first_event", "The provider said nothing for {seconds:g} s."),
    "between_events": _Limit(
        "between_events", "The provider fell silent in mid-answer for {seconds:g} s."
    ),
    "total": _Limit("total", "The provider's answer was not complete after {seconds:g} s."),
}


class Watch:
    """Watches one call for the task that makes it.

    When a limit passes, the task is cancelled, as :func:`asyncio.timeout` does it; whoever
    catches the ``CancelledError`` asks :meth:`claim` whose it is. Time between :meth:`pause`
    and :meth:`resume` counts for no limit: there a reader of ours is slow, not the provider.
    """

    phase: Phase = "total"
    _due = _seconds = _armed = inf
    _handle: asyncio.TimerHandle | None = None
    _paused_at: float | None = None
    _expired: Phase | None = None

    def __init__(self, total: float) -> None:
        self._loop = loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        if task is None:
            raise RuntimeError("a call needs a task")
        self._task = task
        self._cancels = task.cancelling()
        self._total = total
        self._deadline = loop.time() + total

    def expect(self, phase: Phase, seconds: float) -> None:
        """From now, ``phase`` may take ``seconds``; its predecessor's limit is over."""
        self.phase = phase
        self._seconds = seconds
        self._due = due = self._loop.time() + seconds
        if due < self._armed:
            self._arm(due if due < self._deadline else self._deadline)

    def expect_total(self) -> None:
        """From now only the limit of the whole call holds."""
        self.phase = "total"
        self._due = inf
        self._arm(self._deadline)

    def pause(self) -> None:
        """Stop all clocks."""
        self._paused_at = self._loop.time()

    def resume(self) -> None:
        """Let the clocks go on from where they stood."""
        if self._paused_at is None:
            return
        lost = self._loop.time() - self._paused_at
        self._paused_at = None
        self._due += lost
        self._deadline += lost
        self._arm(min(self._due, self._deadline))

    def claim(self) -> None:
        """To be called where a ``CancelledError`` was caught.

        :raises Fault: ``upstream_timeout`` if a limit passed and nobody else cancelled the task.
        """
        if self._expired is None or self._task.uncancel() > self._cancels:
            return
        row = _LIMITS[self._expired]
        seconds = self._total if self._expired == "total" else self._seconds
        raise Fault(
            "upstream_timeout",
            row.message.format(seconds=seconds),
            code=row.code,
            phase=row.phase,
            billed=_LIMITS[self.phase].billed,  # `total` may pass while nothing has been sent
        )

    def close(self) -> None:
        """No limit any more, whatever is expected after this."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._armed = -inf  # no limit is earlier, so _arm() leaves it at that

    def _arm(self, due: float) -> None:
        if due >= self._armed:
            return  # the armed timer fires earlier, and will look again
        if self._handle is not None:
            self._handle.cancel()
        self._armed = due
        self._handle = self._loop.call_at(due, self._fire)

    def _fire(self) -> None:
        self._handle = None
        self._armed = inf
        if self._paused_at is not None:
            return  # resume() arms it again
        now = self._loop.time()
        if now < self._due and now < self._deadline:
            self._arm(min(self._due, self._deadline))
            return
        self._expired = self.phase if self._due <= now else "total"
        self._task.cancel()
