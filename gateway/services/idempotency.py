"""One call for one ``Idempotency-Key``, however often it is asked for.

A key belongs to a project, and stands for one request: the same key with another request is a
fault. While the call is under way whoever asks again reads the same bytes from the start; it is
given up when the last of them leaves, and the key is free again. When it has ended, its answer is
told again for as long as ``[store] retention`` keeps it. What failed in a way that may pass is not
kept, so that it can be tried again.

Must not know HTTP servers: it is given work that writes into a recording.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from adapters.canonical.clock import Clock
from adapters.canonical.faults import Fault
from adapters.canonical.record import record
from gateway.flow.shielded import shielded
from gateway.services.recording import KEPT_BYTES, Head, Reader, Recording
from gateway.store.base import Store
from gateway.store.idempotency import Claim, Kept

log = logging.getLogger("gateway.idempotency")

LEASE = 60.0
"""Seconds after which the key of a crashed replica is free again."""

RENEW_EVERY = 20.0

PASSING = frozenset({401, 402, 403, 404, 408, 409, 425, 429, 499})
"""Statuses that another try may not meet; they are not kept, nor is anything from 500 on."""


@record(frozen=True, slots=True)
class Asking:
    """A call under a key. ``digest`` is of everything that makes two calls the same."""

    project: str
    key: str
    digest: bytes
    request_id: str


class Running:
    """A key in use by this process.

    ``original`` is the id of the call that makes the answer, or made it, as the ledger knows it.
    ``succeeded`` is set by the work before its last frame, where what it tells is no failure;
    ``kept`` when the answer stands in the book.
    """

    __slots__ = ("asking", "kept", "original", "recording", "succeeded", "task")

    def __init__(self, asking: Asking) -> None:
        self.asking = asking
        self.original = asking.request_id
        self.succeeded = False
        self.kept = False
        self.recording: Recording
        self.task: asyncio.Task[None] | None = None

    @property
    def over(self) -> bool:
        """Whether it has nothing to tell to whoever comes now: given up, or failed."""
        return self.recording.left.is_set() or (self.recording.ended and not self.kept)


Work = Callable[[Running], Awaitable[None]]
"""Writes the answer into the recording. Returns when the last frame is written, or when
everybody has left."""


class Idempotency:
    """The keys in use, and the book of those that have an answer.

    :param days: how long answers are told again, read at each use.
    :param keeps: whether answers may be kept at all, read at each use: they are content at rest.
    """

    def __init__(
        self, store: Store, clock: Clock, days: Callable[[], float], keeps: Callable[[], bool]
    ) -> None:
        self._store = store
        self._clock = clock
        self._days = days
        self._keeps = keeps
        self._running: dict[tuple[str, str], Running] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def enter(self, asking: Asking, work: Work) -> tuple[Running, Reader]:
        """A reader of the answer: of the call under way, of the one that has been, or of ``work``.

        :raises Fault: ``idempotency_mismatch`` for another request under the same key, or
            ``conflict`` where the answer can't be joined any more. Reading raises these, too.
        """
        found = self._running.get((asking.project, asking.key))
        if found is None or found.over:
            found = self._begin(asking, work, None if found is None else found.task)
        elif found.asking.digest != asking.digest:
            raise mismatch()
        return found, found.recording.read()

    async def close(self) -> None:
        """End what is under way; its keys are free."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _begin(self, asking: Asking, work: Work, previous: asyncio.Task[None] | None) -> Running:
        running = Running(asking)
        running.recording = Recording(partial(self._keep, running))
        self._running[(asking.project, asking.key)] = running
        running.task = asyncio.create_task(self._run(running, work, previous))
        self._tasks.add(running.task)
        running.task.add_done_callback(self._tasks.discard)
        return running

    async def _run(self, running: Running, work: Work, previous: asyncio.Task[None] | None) -> None:
        recording = running.recording
        try:
            if previous is not None:
                await asyncio.wait([previous])  # the call that everybody left lets go first
            await self._claimed(running, work)
        except Fault as fault:
            recording.refuse(fault)
        except Exception:
            log.exception("a call under an Idempotency-Key failed")
            recording.refuse(Fault("internal", "The gateway made a mistake. It is logged."))
        finally:
            recording.refuse(Fault("cancelled", "The call was given up before it had an end."))
            place = (running.asking.project, running.asking.key)
            if self._running.get(place) is running:
                del self._running[place]

    async def _claimed(self, running: Running, work: Work) -> None:
        """Claim the key and do the work, or tell what stands under the key."""
        asking, now = running.asking, self._clock.wall()
        claim = Claim(
            asking.project, asking.key, asking.digest, asking.request_id, now, now + LEASE
        )
        kept = await self._store.claim_key(claim, now - self._days() * 86_400)
        if kept is not None:
            await _replay(running, kept)
            return
        renewing = asyncio.create_task(self._renew(claim))
        try:
            await work(running)
        finally:
            renewing.cancel()
            if not running.kept:
                await shielded(self._store.release_key(claim))

    async def _renew(self, claim: Claim) -> None:
        """Hold the claim as long as the work lasts."""
        while True:
            await asyncio.sleep(RENEW_EVERY)
            with contextlib.suppress(Fault):  # the lease outlives two missed renewals
                await self._store.extend_claim(claim, self._clock.wall() + LEASE)

    async def _keep(self, running: Running, last: bytes) -> None:
        """Put the answer away before anybody hears its end, so that whoever loses its connection
        in the very last moment still finds it."""
        recording, asking = running.recording, running.asking
        head = recording.head
        if head is None or not running.succeeded or not self._days():
            return
        if head.status in PASSING or head.status >= 500:
            return
        body = recording.body(last) if recording.whole and self._keeps() else None
        if body is not None and len(body) > KEPT_BYTES:
            body = None
        now = self._clock.wall()
        claim = Claim(asking.project, asking.key, asking.digest, asking.request_id, now, now)
        kept = Kept(asking.digest, asking.request_id, head.status, head.headers, body)
        running.kept = True
        await shielded(self._store.keep_answer(claim, kept, now))


async def _replay(running: Running, kept: Kept) -> None:
    """Tell what stands under the key.

    :raises Fault: for another request, for one under way elsewhere, for an answer not kept.
    """
    if kept.digest != running.asking.digest:
        raise mismatch()
    if kept.status is None:
        raise Fault(
            "conflict",
            "A call with this Idempotency-Key is under way on another instance. Try again "
            "shortly: its answer is told when it is there.",
            code="idempotency_in_progress",
            retry_after=1.0,
        )
    if kept.body is None:
        raise Fault(
            "conflict",
            "The call with this Idempotency-Key has been made, and its answer was not kept: it "
            "was too long, or this gateway keeps no content. A new call needs a new key.",
            code="idempotency_not_kept",
        )
    running.original, running.kept = kept.request_id, True
    running.recording.start(Head(kept.status, kept.headers))
    await running.recording.write(kept.body, more=False)


def mismatch() -> Fault:
    """What another request under a used key gets."""
    return Fault(
        "idempotency_mismatch",
        "This Idempotency-Key was used for another request. A key stands for one request: send "
        "this one under a new key.",
    )
