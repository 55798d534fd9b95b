"""Whoever is compared: started, watched, and measured in turn with the others.

CPU and memory are those of all of a server's processes. Every call has to be answered with status
200, the whole text and its end; where one is not, there is no figure.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace

from benchmarks.cpu import Side, Tell
from benchmarks.load import drive
from benchmarks.memory import sizes
from benchmarks.mock import WORD, WORDS
from benchmarks.scenarios import SCENARIOS, Scenario
from benchmarks.servers import Unfit, cpu_seconds, family, rss_bytes

FIRST = replace(SCENARIOS[0], concurrency=1)
"""The call after a start."""
SLOW = Scenario("slow stream", "paced-60-500", "chat", "call", None, 0, 0)
FEW, MANY, REST = 48, 208, 2.0
"""Slow streams, between which memory grows by what one holds; and seconds before each look."""

SECONDS, SETTLES = 1.5, 1.0
"""About how long one measurement lasts, as a slow rival makes fewer calls; and the round before the
first, which does not count: just-in-time compilers and caches have their time."""
WARM_UP = 16
"""Calls before each measurement."""
PATIENCE = 90.0
"""Seconds after which calls that are not answered have failed."""

FINISHED = re.compile(rb'"finish_reason":\s*"stop"')


@dataclass(frozen=True, slots=True)
class Entrant:
    """Whoever can be measured: how it is started, and what it is sent for a scenario."""

    name: str
    version: str
    serve: Callable[[], AbstractContextManager[Side]]
    payload: Callable[[Scenario], bytes]

    @property
    def label(self) -> str:
        """Its name in a table."""
        return f"{self.name} {self.version}".strip()


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident bytes of all of a server's processes: idle, and for an open stream, or why that is
    not known."""

    idle: int
    stream: float | str


@dataclass(frozen=True, slots=True)
class Contender:
    """An entrant that runs, the seconds to its first answer after each start, and its memory."""

    entrant: Entrant
    side: Side
    starts: Sequence[float]
    memory: Memory


@dataclass(frozen=True, slots=True)
class Figures:
    """By entrant: microseconds in each round, or why there are none."""

    taken: dict[str, list[float]]
    broken: dict[str, str]

    def ratios(self, name: str, base: str) -> list[float]:
        """Round by round."""
        pairs = zip(self.taken[name], self.taken[base], strict=True)
        return [value / low for value, low in pairs]


def complete(scenario: Scenario) -> Callable[[bytes], bool]:
    """Whether a body has all the text of a scenario's answer, and its end."""
    words = WORDS if scenario.model == "whole" else scenario.chunks
    text = WORD.encode()
    return lambda body: body.count(text) >= words and FINISHED.search(body) is not None


async def calls(entrant: Entrant, side: Side, scenario: Scenario, number: int) -> float:
    """Make so many calls; the seconds that they took. Raises :class:`Unfit` where one failed."""
    began = time.perf_counter()
    try:
        async with asyncio.timeout(PATIENCE):
            result = await drive(
                side[1],
                entrant.payload(scenario),
                number,
                scenario.concurrency,
                complete=complete(scenario),
            )
    except TimeoutError as fault:
        raise Unfit(f"no whole answers within {PATIENCE:.0f} s") from fault
    if result.failed:
        raise Unfit(f"{result.failed} of {number} answers failed")
    return time.perf_counter() - began


async def micros(contender: Contender, scenario: Scenario, seconds: float) -> float:
    """Microseconds of CPU that one call or chunk costs, all processes together."""
    entrant, side = contender.entrant, contender.side
    each = await calls(entrant, side, scenario, WARM_UP) / WARM_UP
    waves = round(min(seconds / each, scenario.calls) / scenario.concurrency)
    number = max(WARM_UP, waves * scenario.concurrency)
    before = spent(side)
    await calls(entrant, side, scenario, number)
    return (spent(side) - before) * 1e6 / replace(scenario, calls=number).units


def spent(side: Side) -> float:
    """Seconds of CPU that all of a server's processes have used."""
    return sum(cpu_seconds(pid) for pid in family(side[0]))


def resident(side: Side) -> int:
    """Bytes that all of a server's processes hold."""
    return sum(rss_bytes(pid) for pid in family(side[0]))


async def remembered(entrant: Entrant, side: Side) -> Memory:
    """The memory of an entrant that has just started."""
    idle, payload = resident(side), entrant.payload(SLOW)
    try:
        async with asyncio.timeout(PATIENCE):
            few, many = await sizes(lambda: resident(side), side[1], payload, (FEW, MANY), REST)
    except Unfit as fault:
        return Memory(idle, str(fault))
    except TimeoutError:
        return Memory(idle, f"not open within {PATIENCE:.0f} s")
    return Memory(idle, (many - few) / (MANY - FEW))


async def enter(entrant: Entrant, stack: ExitStack, times: int) -> Contender:
    """Start an entrant several times, and let the last one run on in ``stack``."""
    starts: list[float] = []
    held: Memory | None = None
    while True:
        with ExitStack() as once:
            began = time.perf_counter()
            side = once.enter_context(entrant.serve())
            await calls(entrant, side, FIRST, 1)
            starts.append(time.perf_counter() - began)
            held = held or await remembered(entrant, side)
            if len(starts) == times:
                stack.enter_context(once.pop_all())
                return Contender(entrant, side, starts, held)


async def _tried(contender: Contender, scenario: Scenario, seconds: float, say: Tell) -> float:
    """As :func:`micros`; where a call fails, all is thrown away and measured once more."""
    try:
        return await micros(contender, scenario, seconds)
    except Unfit as fault:
        say(f"{contender.entrant.name}: {fault}; once more")
        return await micros(contender, scenario, seconds)


async def measured(
    contenders: Sequence[Contender], scenario: Scenario, rounds: int, say: Tell
) -> Figures:
    """All contenders in turn, several rounds. Who fails twice in a row is left out from there."""
    figures = Figures({one.entrant.name: [] for one in contenders}, {})
    for number in range(rounds + 1):
        say(f"{scenario.name}: {f'round {number} of {rounds}' if number else 'settling'}")
        for contender in contenders:
            name = contender.entrant.name
            if name in figures.broken:
                continue
            try:
                figure = await _tried(contender, scenario, SECONDS if number else SETTLES, say)
            except Unfit as fault:
                figures.broken[name] = str(fault)
                del figures.taken[name]
            else:
                figures.taken[name] += [figure] if number else []
    return figures
