"""One fault, one way of asking: what should happen, what happened, and the verdict.

Both sides are looked at: what the caller got and when, what attempts the provider saw and when;
and the books, which have to agree with the provider.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from adapters.canonical.faults import KINDS
from adapters.simulator import Attempt
from tests.faults.callers import CALLERS, TEXT, Caller, Heard, code_of
from tests.faults.catalogue import Fault
from tests.harness import Harness, alias

Verdict = Literal["rescued", "clean error", "hang", "lie"]
Way = Literal["alone", "second", "complete"]

TIMEOUTS = {"connect": 5, "first_event": 2.5, "between_events": 2.5, "total": 5.0}
"""Short, and long enough for a sound target on a busy machine."""

CEILING = 15.0
"""Seconds after which an answer that has not ended counts as a hang: twice what the slowest
right conduct takes."""

SOCKET_CEILING = 2.0
"""Seconds within which the provider's socket of a failed attempt has to be let go."""

PROVIDERS = {"openai-chat": "chat", "openai-responses": "openai", "anthropic-messages": "anthropic"}


@dataclass(frozen=True)
class Case:
    """A fault, met in one of the ways.

    ``alone``: the target that fails is the only one. ``second``: a sound one follows it.
    ``complete``: a sound one follows, and the alias holds every answer until it is whole.
    """

    fault: Fault
    way: Way
    stream: bool
    north: Caller
    south: str

    @property
    def alias(self) -> str:
        form = "stream" if self.stream else "whole"
        name = self.fault.name.replace(" ", "-")
        return f"{self.north.dialect}/{self.south}/{form}/{self.way}/{name}"

    @property
    def model(self) -> str:
        """The failing model; its own for each case, for breakers and counters to be apart."""
        form = "s" if self.stream else "w"
        pair = f"{self.north.dialect}-over-{PROVIDERS[self.south]}"
        return f"{self.fault.word}+{pair}-{form}-{self.way}"

    @property
    def sound(self) -> str:
        """The model of the second target."""
        return f"sound+{self.model.replace('fault', 'f')}"

    def toml(self) -> str:
        """The alias that meets the fault."""
        provider = PROVIDERS[self.south]
        targets = [(provider, self.model)]
        if self.way != "alone":
            targets.append((provider, self.sound))
        commit = "complete" if self.way == "complete" else "first_content"
        return alias(self.alias, *targets, retries=1, commit=commit, timeouts=TIMEOUTS, deadline=12)

    def expected(self) -> Expected:
        """The right conduct."""
        fault = self.fault if self.stream else replace(self.fault, **self.fault.whole)
        rescued = Expected("rescued", tries=fault.tries)
        if fault.kind == "":
            return rescued
        if self.stream and fault.mid and self.way != "complete":
            return Expected("clean error", fault.kind, tries=1, in_band=True)
        if self.way != "alone" and fault.elsewhere:
            return replace(rescued, elsewhere=1)
        return Expected("clean error", fault.kind, tries=fault.tries)


@dataclass(frozen=True)
class Expected:
    """``tries`` at the failing target, ``elsewhere`` at the sound one."""

    verdict: Verdict
    kind: str = ""
    tries: int = 1
    elsewhere: int = 0
    in_band: bool = False


@dataclass
class Outcome:
    """What happened; ``wrong`` lists everything that should have been otherwise."""

    case: Case
    verdict: Verdict
    seconds: float
    heard: Heard = field(default_factory=Heard)
    wrong: list[str] = field(default_factory=list)


def cases(fault: Fault) -> Iterator[Case]:
    """Every way to meet ``fault``: each provider dialect under its own caller and a stranger."""
    for number, north in enumerate(CALLERS):
        for south in (north.dialect, CALLERS[number - 1].dialect):
            if south not in fault.dialects:
                continue
            for stream in (True, False):
                if fault.form is not None and stream != (fault.form == "stream"):
                    continue
                ways: tuple[Way, ...] = ("alone", "second", "complete")
                for way in ways if stream else ways[:2]:
                    yield Case(fault, way, stream, north, south)


async def meet(g: Harness, case: Case) -> Outcome:
    """Make the call and judge it from all sides."""
    body = case.north.body(case.alias, case.stream)
    began = time.monotonic()
    try:
        async with asyncio.timeout(CEILING):
            answer = await g.post(case.north.path, body)
    except TimeoutError:
        return Outcome(case, "hang", CEILING, wrong=[f"no end within {CEILING} s"])
    seconds = time.monotonic() - began
    heard = case.north.hear(answer.status, answer.headers, answer.body)
    expected = case.expected()
    outcome = Outcome(case, _verdict(heard), seconds, heard)
    outcome.wrong += [*_from_above(case, expected, outcome, answer)]
    outcome.wrong += [*await _from_below(g, case, expected)]
    outcome.wrong += [*await _in_the_books(g, case, expected, answer)]
    return outcome


def _verdict(heard: Heard) -> Verdict:
    if heard.whole and heard.text == TEXT:
        return "rescued"
    if heard.code is not None and not heard.whole and TEXT.startswith(heard.text.strip()):
        return "clean error"
    return "lie"


def _from_above(case: Case, expected: Expected, got: Outcome, answer: Any) -> Iterator[str]:
    """What the caller sees."""
    heard, headers = got.heard, answer.headers
    if heard.garbled is not None:
        yield f"not in the protocol: {heard.garbled}"
    if got.verdict != expected.verdict:
        yield f"{got.verdict}, not {expected.verdict}: {answer.status} {answer.body[:300]!r}"
    if heard.code is not None:
        if expected.kind and heard.code != code_of(expected.kind):
            yield f"told as {heard.code}, not {code_of(expected.kind)}"
        if heard.in_band != expected.in_band:
            yield f"in-band is {heard.in_band}"
    wanted = KINDS[expected.kind].status if expected.kind and not expected.in_band else 200
    if answer.status != wanted:
        yield f"status {answer.status}, not {wanted}"
    if expected.verdict == "clean error" and case.fault.retry_after is not None:
        if headers.get("retry-after") != str(case.fault.retry_after):
            yield f"Retry-After is {headers.get('retry-after')}"
    elif "retry-after" in headers and expected.verdict == "rescued":
        yield "a Retry-After of an attempt that was given up"
    if answer.body.find(b"sk-provider") >= 0:
        yield "the provider's key is in the answer"


async def _from_below(g: Harness, case: Case, expected: Expected) -> Iterator[str]:
    """What the provider saw: how many attempts, when, and that all its sockets were let go."""
    log = g.simulator.log
    failing, sound = log.of(case.model), log.of(case.sound)
    wrong = []
    if (len(failing), len(sound)) != (expected.tries, expected.elsewhere):
        counts = f"{len(failing)} + {len(sound)}"
        wrong.append(f"{counts} attempts, not {expected.tries} + {expected.elsewhere}")
    if len(failing) > 1 and failing[1].at - failing[0].at < case.fault.again_after:
        wrong.append(f"tried again after {failing[1].at - failing[0].at:.2f} s")
    try:
        async with asyncio.timeout(SOCKET_CEILING):
            await asyncio.gather(*(attempt.ended.wait() for attempt in failing))
    except TimeoutError:
        wrong.append("the provider's socket is still held")
    return iter(wrong)


async def _in_the_books(g: Harness, case: Case, expected: Expected, answer: Any) -> Iterator[str]:
    """The ledger has what the provider saw, attempt for attempt."""
    row = await g.explain(answer)
    attempts = row["attempts"]
    seen: list[Attempt] = [*g.simulator.log.of(case.model), *g.simulator.log.of(case.sound)]
    wrong = []
    if len(attempts) != len(seen):
        wrong.append(f"{len(attempts)} rows for {len(seen)} attempts")
    if [a["model"] for a in attempts] != [a.model for a in seen]:
        wrong.append("the rows are out of order")
    if any(a["status"] == "open" for a in attempts) or row["status"] == "open":
        wrong.append("a row is still open")
    if (row["fault"] or "") != expected.kind:
        wrong.append(f"the row's fault is {row['fault']}")
    chain = answer.headers.get("x-gateway-attempts", "")
    told = [note.rpartition(":")[0] for note in chain.split(", ")] if chain else []
    provider = PROVIDERS[case.south]
    if not case.stream and told != [f"{provider}/{a['model']}" for a in attempts]:
        wrong.append(f"x-gateway-attempts is {chain!r}")
    return iter(wrong)
