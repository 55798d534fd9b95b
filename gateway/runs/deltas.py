"""A model's stream as a run's deltas: put together for a moment, so that a token is not a commit.

The window is 50 ms or 4 kB; it widens to ten times that when commits are slow, so that a loaded
ledger gets fewer and larger events. Deltas are for the eye: what counts is the message at the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from adapters.canonical.completion import Completion, Fold
from adapters.canonical.events import Event, PartStarted, TextDelta, ThinkingDelta
from adapters.canonical.parts import Refusal, Thinking
from gateway.flow.context import Head
from gateway.runs.events import Draft, draft

WINDOW = 0.05
WIDEST = 0.5
"""Seconds."""
LOAD = 10.0
"""The window is this many times what the last commit took, within its bounds."""
CHARACTERS = 4_096

Write = Callable[[Sequence[Draft]], Awaitable[object]]


class _Place(NamedTuple):
    """Where text belongs: neighbours of one place are one delta."""

    type: str
    part: int
    section: int | None = None


class DeltaSink:
    """A :class:`gateway.flow.context.CallSink` that writes deltas and keeps the whole answer.

    :param commit_seconds: how long the last commit took.
    :param on_head: told of each attempt's head.
    """

    def __init__(
        self,
        step: str,
        agent: str | None,
        write: Write,
        commit_seconds: Callable[[], float],
        on_head: Callable[[Head], None],
    ) -> None:
        self._step = step
        self._agent = agent
        self._write = write
        self._commit_seconds = commit_seconds
        self._on_head = on_head
        self._fold = Fold()
        self._refusals: set[int] = set()
        self._summaries: set[int] = set()
        self._pending: list[tuple[_Place, list[str]]] = []
        self._size = 0
        self._flushing = asyncio.Lock()
        self._timer: asyncio.Task[None] | None = None

    def use(self, head: Head) -> None:
        """The attempt under way has this head."""
        self._on_head(head)

    async def send(self, events: list[Event]) -> None:
        """Take events; waits only when a whole window is full."""
        for event in events:
            self._fold.add(event)
            if isinstance(event, PartStarted):
                self._begin(event)
            elif isinstance(event, TextDelta):
                self._add(_Place("message.delta", event.index), event.text)
            elif isinstance(event, ThinkingDelta):
                section = event.section if event.index in self._summaries else None
                self._add(_Place("reasoning.delta", event.index, section), event.text)
        if self._size >= CHARACTERS * self._window() / WINDOW:
            await self.flush()
        elif self._pending and (self._timer is None or self._timer.done()):
            self._timer = asyncio.create_task(self._later())

    async def flush(self) -> None:
        """Write what is pending, as one commit."""
        async with self._flushing:
            pending, self._pending, self._size = self._pending, [], 0
            if pending:
                await self._write([self._draft(*one) for one in pending])

    async def close(self) -> None:
        """Stop the clock: nothing is written by itself any more. What is being written is
        finished, what is pending stays for :meth:`flush`."""
        if self._timer is not None:
            async with self._flushing:
                self._timer.cancel()
            await asyncio.wait([self._timer])

    def completion(self) -> Completion:
        """The answer as far as it has come."""
        return self._fold.completion()

    async def _later(self) -> None:
        await asyncio.sleep(self._window())
        await self.flush()

    def _window(self) -> float:
        return min(max(WINDOW, LOAD * self._commit_seconds()), WIDEST)

    def _begin(self, event: PartStarted) -> None:
        """Remember what a part is; reasoning is told even before it says anything, because sealed
        reasoning never does, and its place is before the text."""
        match event.head:
            case Refusal():
                self._refusals.add(event.index)
            case Thinking(summary=summary):
                if summary is not None:
                    self._summaries.add(event.index)
                self._pending.append((_Place("reasoning.delta", event.index), [""]))

    def _add(self, place: _Place, text: str) -> None:
        if not text:
            return
        if self._pending and self._pending[-1][0] == place:
            self._pending[-1][1].append(text)
        else:
            self._pending.append((place, [text]))
        self._size += len(text)

    def _draft(self, place: _Place, texts: list[str]) -> Draft:
        told: dict[str, object] = {"part": place.part, "text": "".join(texts)}
        if place.section is not None:
            told["section"] = place.section
        if place.part in self._refusals:
            told["refusal"] = True
        return draft(place.type, step=self._step, agent=self._agent, **told)
