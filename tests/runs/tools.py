"""Tools that a test can see through: they count, wait, fail, and remember their keys."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from adapters.canonical.clock import SystemClock
from adapters.canonical.parts import Text
from gateway.tools.base import ToolContext, ToolOutcome, ToolSpec
from gateway.tools.builtin import builtins
from tests.harness import Harness

ANYTHING: Mapping[str, Any] = {"type": "object"}

Work = Callable[[Mapping[str, Any], ToolContext], Awaitable[Any]]


@dataclass
class Spy:
    """A tool whose calls are on record. ``work`` gives a text, an outcome, or raises."""

    spec: ToolSpec
    work: Work | None = None
    calls: list[Mapping[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
        self.calls.append(arguments)
        self.keys.append(context.idempotency_key)
        found = (
            f"{self.spec.name} done" if self.work is None else await self.work(arguments, context)
        )
        return found if isinstance(found, ToolOutcome) else ToolOutcome((Text(str(found)),))


def spy(name: str, work: Work | None = None, **spec: Any) -> Spy:
    """A tool of this name; any arguments, unless ``parameters`` says otherwise."""
    return Spy(ToolSpec(**{"name": name, "parameters": ANYTHING, **spec}), work)


def use(g: Harness, *tools: Spy) -> None:
    """Give the gateway these tools besides the ones built in."""
    g.state.runs.bench.tools().replace([*builtins(SystemClock()), *tools])


def slow(seconds: float) -> Work:
    """Work that takes its time."""

    async def work(arguments: Mapping[str, Any], context: ToolContext) -> str:
        await asyncio.sleep(seconds)
        return "slow but done"

    return work
