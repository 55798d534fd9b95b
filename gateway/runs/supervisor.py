"""Keeps the runs going: claims what has work, keeps its claims alive, wakes what has slept.

A bounded number of runs is worked on at once; a run that waits holds nothing. A claim is a lease
and an epoch: who loses it can write nothing more. All tasks belong to the supervisor; it joins
them when it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable

from adapters.canonical.faults import Fault
from adapters.canonical.record import record
from gateway.runs import commands
from gateway.runs.bench import Bench
from gateway.runs.children import ChildRuns
from gateway.runs.events import Draft
from gateway.runs.executor import GRACE, Executor
from gateway.runs.ledger import Lost, patiently
from gateway.runs.state import Run
from gateway.runs.status import IDLE
from gateway.store.runs import Birth, RunRow

log = logging.getLogger("gateway.runs")

TICK = 0.5
"""Seconds between looks at the books when nobody calls."""
DUE = 50
"""Sleeping runs that are looked at in one tick."""
PAUSE = 1.0
"""Seconds for which a run that made its worker fail is left alone."""
MAX_FAILURES = 3
"""How often that may happen in a row before the run itself is taken to be the cause."""


@record(frozen=True, slots=True)
class Bounds:
    """How many runs at once, how long a claim lasts without renewal, how long a run may idle;
    seconds."""

    concurrent: int
    lease: float
    ttl: float


class Supervisor:
    """The runs of one process. Serve it in a task group; nudge it when there is work.

    :param bounds: read at each use, since a reload may change them.
    """

    def __init__(self, bench: Bench, bounds: Callable[[], Bounds]) -> None:
        self._bench = bench
        self._bounds = bounds
        self.owner = bench.ledger.clock.new_id("worker_")
        self.grace = GRACE
        self.on_let_go: Callable[[Birth], Awaitable[None]] | None = None
        """Told of every run that was worked on and has ended, or waits."""
        self._work: dict[str, asyncio.Task[None]] = {}
        self._claims: set[tuple[str, int]] = set()
        """Runs that are worked on, children included, and the epochs of their claims."""
        self._executors: dict[str, Executor] = {}
        self._abandoned: set[asyncio.Task[None]] = set()
        self._failures: Counter[str] = Counter()
        self._nudged = asyncio.Event()
        self._version: int | None = None
        self._renewed = 0.0
        self._draining = False
        self._children = ChildRuns(bench, self)

    @property
    def working(self) -> int:
        """Runs that are worked on now."""
        return len(self._work)

    @property
    def draining(self) -> bool:
        """Nothing new is begun: runs are let go at their next border."""
        return self._draining

    def nudge(self) -> None:
        """There is work: look at once."""
        self._nudged.set()

    async def serve(self) -> None:
        """Until cancelled; then everything that is under way is stopped and released."""
        listening = asyncio.create_task(self._bench.ledger.store.hear_runs(self._heard))
        try:
            while True:
                try:
                    await self._tick()
                except Fault as fault:
                    log.warning("runs: %s", fault.detail or fault.message)
                except Exception:  # one bad row must not end the work on all others
                    log.exception("runs: a look at the books failed")
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._nudged.wait(), TICK)
                self._nudged.clear()
        finally:
            listening.cancel()
            await asyncio.wait([listening])
            await self._stop()

    def _heard(self, run_id: str, free: bool) -> None:
        """Another process has written to a run, or to any."""
        if run_id:
            self._bench.hub.wake(run_id)
        else:
            self._bench.hub.wake_all()
        if free or not run_id:
            self.nudge()

    async def drain(self, seconds: float) -> None:
        """Begin nothing new; let every run come to a border within ``seconds``, and release it."""
        self._draining = True
        self._bench.hub.wake_all()
        for executor in self._executors.values():
            executor.draining = True
            executor.wake()
        if self._work:
            await asyncio.wait(list(self._work.values()), timeout=seconds)

    # one look

    async def _tick(self) -> None:
        now = self._bench.ledger.clock.wall()
        await self._renew(now)
        await self._notice_others()
        await self._wake_sleepers(now)
        await self._claim(now)

    async def _renew(self, now: float) -> None:
        """Keep the claims that are worked under; whoever has lost his stops. A claim whose word was
        lost, or that could not be given back, ends with its lease."""
        lease = self._bounds().lease
        if not self._claims or now - self._renewed < lease / 3:
            return
        worked_on = {run_id for run_id, _ in self._claims}
        store = self._bench.ledger.store
        held = set(await store.renew_runs(self.owner, worked_on, now + lease))
        self._renewed = now
        for run_id, task in self._work.items():
            if run_id not in held:
                log.warning("run %s: the claim is lost", run_id)
                task.cancel()

    async def _notice_others(self) -> None:
        """Another process (the command line, a replica) may have written: everybody looks."""
        version = await self._bench.ledger.store.runs_version()
        if self._version is not None and version != self._version:
            self._bench.hub.wake_all()
        self._version = version

    async def _wake_sleepers(self, now: float) -> None:
        for run_id in await self._bench.ledger.store.due_runs(now, DUE):
            with contextlib.suppress(Lost):
                await self._bench.ledger.command(run_id, lambda run: self._overdue(run, now))

    def _overdue(self, run: Run, now: float) -> tuple[Draft, ...]:
        if run.status in IDLE and run.since + self._bounds().ttl <= now:
            return commands.expire(run, now)
        return commands.lapse(run, now)

    async def _claim(self, now: float) -> None:
        bounds = self._bounds()
        free = bounds.concurrent - len(self._work)
        if free <= 0 or self._draining:
            return
        store = self._bench.ledger.store
        for row in await store.claim_runs(self.owner, now, now + bounds.lease, free):
            self._begin(row)

    # one run

    def _begin(self, row: RunRow) -> None:
        run_id = row.birth.id
        task = asyncio.get_running_loop().create_task(self.carry_out(row), name=f"run:{run_id}")
        self._work[run_id] = task
        task.add_done_callback(lambda done: self._ended(run_id, done))

    def _ended(self, run_id: str, task: asyncio.Task[None]) -> None:
        if self._work.get(run_id) is task:
            del self._work[run_id]
        self.nudge()

    def lease_until(self) -> float:
        """The end of a claim that is made now."""
        return self._bench.ledger.clock.wall() + self._bounds().lease

    async def carry_out(self, row: RunRow) -> None:
        """Work on a claimed run until it ends, waits or is let go."""
        run_id = row.birth.id
        self._claims.add((run_id, row.epoch))
        try:
            await self._execute(row)
            self._failures.pop(run_id, None)
            if (let_go := self.on_let_go) is not None:
                await patiently(self._bench.ledger.clock, lambda: let_go(row.birth))
        except Lost:
            log.info("run %s: let go", run_id)
        except Fault as fault:
            log.warning("run %s: %s", run_id, fault.detail or fault.message)
            await asyncio.sleep(PAUSE)
        except Exception:
            log.exception("run %s: its worker failed", run_id)
            await self._failed(run_id)
        finally:
            self._claims.discard((run_id, row.epoch))
            await asyncio.shield(self._release(run_id, row.epoch))

    async def _failed(self, run_id: str) -> None:
        """A mistake of ours: try again, but not for ever."""
        self._failures[run_id] += 1
        if self._failures[run_id] < MAX_FAILURES:
            await asyncio.sleep(PAUSE)
            return
        del self._failures[run_id]
        now = self._bench.ledger.clock.wall()
        with contextlib.suppress(Lost, Fault):
            await self._bench.ledger.command(run_id, lambda run: commands.give_up(run, now))

    async def _execute(self, row: RunRow) -> None:
        ledger = self._bench.ledger
        tape = await patiently(ledger.clock, lambda: ledger.tape(row.birth.id))
        if tape.epoch != row.epoch:
            raise Lost(row.birth.id)
        executor = Executor(self._bench, tape, row.birth, self._children, self._keep)
        executor.draining = self._draining
        executor.grace = self.grace
        self._executors[row.birth.id] = executor
        try:
            await executor.run(orphaned=row.lease_until is not None)
        finally:
            del self._executors[row.birth.id]

    async def _release(self, run_id: str, epoch: int) -> None:
        ledger = self._bench.ledger
        with contextlib.suppress(Fault):  # the lease ends by itself
            if self._draining:
                await ledger.store.release_run(run_id, epoch)
            else:
                await patiently(ledger.clock, lambda: ledger.store.release_run(run_id, epoch))

    def _keep(self, task: asyncio.Task[None]) -> None:
        """A task that would not stop: held until it does, whatever it does unheard."""
        self._abandoned.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._abandoned.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.info("a task that was given up ended: %r", task.exception())

    async def _stop(self) -> None:
        self._draining = True
        for task in self._work.values():
            task.cancel()
        if self._work:
            await asyncio.wait(list(self._work.values()))
