"""Lines to a stream without ever waiting for it.

A log pipe that nobody reads must not stop the event loop (fault kind K19): lines go to a
bounded buffer which a thread of its own empties, many lines in one write. What does not fit is
dropped and counted. Must not know what a line says.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TextIO

BOUND = 10_000
"""Lines kept while the stream is slow."""

COALESCE = 0.02
"""Seconds that the thread lets lines gather: waking it for each would cost more than the line."""


class Writer:
    """Owns one thread and one buffer; ``close`` empties the buffer and ends the thread.

    :param on_drop: told of each line that was thrown away, in the caller's thread.
    """

    def __init__(
        self, stream: TextIO, *, bound: int = BOUND, on_drop: Callable[[], None] | None = None
    ) -> None:
        self._stream = stream
        self._bound = bound
        self._on_drop = on_drop
        self._lines: deque[str] = deque()
        self._wake = threading.Event()
        self._closing = threading.Event()
        self.dropped = 0
        self._thread = threading.Thread(target=self._run, name="gateway-log", daemon=True)
        self._thread.start()

    def write(self, line: str) -> None:
        """Take one line, without its line end. Never blocks, may be called from any thread."""
        if len(self._lines) >= self._bound:
            self.dropped += 1
            if self._on_drop is not None:
                self._on_drop()
            return
        self._lines.append(line)
        if not self._wake.is_set():
            self._wake.set()

    def depth(self) -> int:
        """Lines waiting."""
        return len(self._lines)

    def close(self, timeout: float = 2.0) -> None:
        """Write what is left, waiting at most ``timeout`` seconds for a stream that is stuck."""
        self._closing.set()
        self._wake.set()
        self._thread.join(timeout)

    def _run(self) -> None:
        while not self._closing.is_set():
            self._wake.wait()
            self._closing.wait(COALESCE)
            self._wake.clear()
            self._drain()
        self._drain()

    def _drain(self) -> None:
        taken = []
        while self._lines:
            taken.append(self._lines.popleft())
        if not taken:
            return
        try:
            self._stream.write("\n".join(taken) + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            # the reader went away or the stream is closed: there is nowhere left to say so
            self.dropped += len(taken)
