"""Something awaitable, begun outside of a task and finished in one if it has to be.

Most sends of a stream wait for nothing, so no task need be woken for them. Must not know what is
sent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from typing import Any


class Begun:
    """What is left of something awaitable that has come to its first wait."""

    __slots__ = ("_first", "_steps")

    def __init__(self, first: Any, steps: Generator[Any, Any, None]) -> None:
        self._first = first
        self._steps = steps

    def __await__(self) -> Generator[Any, Any, None]:
        """Go on from the first wait; a cancellation there ends what was begun."""
        try:
            yield self._first
        except BaseException:
            self._steps.close()
            raise
        yield from self._steps


def begun(work: Awaitable[None]) -> Begun | None:
    """Carry ``work`` to its first wait; ``None`` if it had none and is done."""
    steps = work.__await__()
    try:
        return Begun(next(steps), steps)
    except StopIteration:
        return None
