"""What rendering may cost, and how it fails. Must not know Jinja, which most gateways that use no
prompts never need: it takes a fiftieth of their start.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from adapters.canonical.record import record


class TemplateRefused(ValueError):
    """No template that can be used: why, and on which ``line``."""

    def __init__(self, message: str, line: int | None = None) -> None:
        self.line = line
        super().__init__(message if line is None else f"line {line}: {message}")


class RenderingFailed(ValueError):
    """The template and these values make no text; the message says why."""


@record(slots=True)
class Limits:
    """What one rendering may cost, and what it has cost. ``seconds`` run from its first turn."""

    max_bytes: int = 1_000_000
    seconds: float = 2.0
    now: Callable[[], float] = time.monotonic
    _until: float | None = None

    def turn(self) -> None:
        """One step more.

        :raises RenderingFailed: when the time is over.
        """
        now = self.now()
        if self._until is None:
            self._until = now + self.seconds
        elif now > self._until:
            raise RenderingFailed(f"it takes longer than {self.seconds:g} s (prompts.max_seconds)")

    def size(self, length: int) -> None:
        """:raises RenderingFailed: for a text that is too long."""
        if length > self.max_bytes:
            raise RenderingFailed(f"it is longer than {self.max_bytes} bytes (prompts.max_bytes)")


Wrap = Callable[[str], str]
"""Marks a value as data; see :mod:`gateway.policy.inject`."""
