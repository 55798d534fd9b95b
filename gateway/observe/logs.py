"""The gateway's log: standard error, through the standard library's loggers, never waiting.

A call makes exactly one line (:meth:`Logs.access`). Every line passes the
:class:`~gateway.observe.scrub.Scrubber` last, and a bounded buffer that a thread empties
(measured: 8 µs a line with its thread; a ``QueueHandler`` with its listener took 16, not yet
scrubbed). Other people's loggers are kept at warnings, since drivers and clients log statements
and bodies at lower levels. Must not know HTTP or the store; rooms above hand over records.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any, Literal, TextIO

from gateway.observe.lines import ACCESS, RENDERERS, Access, Style, bounded, exception_fields
from gateway.observe.scrub import Scrubber
from gateway.observe.writer import Writer

OURS = ("gateway", "adapters")
"""Loggers that follow the configured level."""

QUIET = ("uvicorn", "uvicorn.error", "uvicorn.asgi", "asyncio")
"""Loggers that bring handlers of their own, or say more than anybody wants to know."""

SILENT = "uvicorn.access"
"""The server's own access log: it tells paths with their queries, and doubles our line."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class _Handler(logging.Handler):
    """Records to lines to the writer. Extra attributes of a record become fields."""

    def __init__(self, logs: Logs) -> None:
        super().__init__()
        self._logs = logs

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, Any] = {"message": bounded(record.getMessage())}
        for name, value in vars(record).items():
            if name not in _STANDARD:
                fields[name] = bounded(value)
        if record.exc_info is not None and record.exc_info[1] is not None:
            fields |= exception_fields(record.exc_info[1], content=self._logs.content)
        self._logs.put(record.created, record.levelname.lower(), record.name, fields)


class Logs:
    """Owns the process's logging between ``install`` and ``close``.

    :param style: ``auto`` is text on a terminal and JSON elsewhere.
    :param level: for the gateway's own loggers, as the standard library names it.
    :param content: texts of exceptions may be shown (``observe.log_content``).
    :param on_drop: told of each line that was dropped because the stream is too slow.
    """

    def __init__(
        self,
        *,
        level: str = "info",
        style: Literal["auto", "json", "text"] = "auto",
        content: bool = False,
        stream: TextIO | None = None,
        on_drop: Callable[[], None] | None = None,
    ) -> None:
        stream = sys.stderr if stream is None else stream
        chosen: Style = style if style != "auto" else "text" if stream.isatty() else "json"
        self.scrubber = Scrubber()
        self.content = content
        self._level = logging.getLevelNamesMapping()[level.upper()]
        self._render = RENDERERS[chosen]
        self._writer = Writer(stream, on_drop=on_drop)
        self._handler = _Handler(self)
        self._before: list[tuple[logging.Logger, dict[str, Any]]] = []

    def register(self, secret: str) -> None:
        """From now on ``secret`` is in no line."""
        self.scrubber.register(secret)

    def know(self, secrets: Iterable[str]) -> None:
        """From now on ``secrets``, and no others, are in no line."""
        self.scrubber.know(secrets)

    def tells(self, status: int) -> bool:
        """Whether a call that ended with ``status`` has its line at this level."""
        return (logging.WARNING if status >= 500 else logging.INFO) >= self._level

    def access(self, record: Access) -> None:
        """The one line of a call: a warning where the fault was not the caller's."""
        if self.tells(record.status):
            name = "warning" if record.status >= 500 else "info"
            self.put(time.time(), name, ACCESS, record.fields())

    def put(self, at: float, level: str, logger: str, fields: dict[str, Any]) -> None:
        """Render, scrub and hand one line to the writer."""
        self._writer.write(self.scrubber.scrub(self._render(at, level, logger, fields)))

    def depth(self) -> int:
        """Lines waiting for the stream."""
        return self._writer.depth()

    def loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An exception that nobody awaited: for ``loop.set_exception_handler``.

        The loop's own handler would print the task, and with it the exception's text.
        """
        fields: dict[str, Any] = {"message": bounded(str(context.get("message", "")))}
        task = context.get("task", context.get("future"))
        if isinstance(task, asyncio.Task):
            fields["task"] = getattr(task.get_coro(), "__qualname__", task.get_name())
        error = context.get("exception")
        if isinstance(error, BaseException):
            fields |= exception_fields(error, content=self.content)
        self.put(time.time(), "error", "gateway.loop", fields)

    def install(self) -> None:
        """Take over the process's loggers; :meth:`close` gives them back."""
        root = logging.getLogger()
        self._take(root, logging.WARNING, [self._handler])
        for name in OURS:
            self._take(logging.getLogger(name), self._level, [])
        for name in QUIET:
            self._take(logging.getLogger(name), logging.WARNING, [])
        self._take(logging.getLogger(SILENT), logging.CRITICAL, [], disabled=True)
        logging.captureWarnings(True)

    def _take(
        self,
        logger: logging.Logger,
        level: int,
        handlers: list[logging.Handler],
        *,
        disabled: bool = False,
    ) -> None:
        before = {name: getattr(logger, name) for name in ("handlers", "propagate", "disabled")}
        self._before.append((logger, {"level": logger.level, **before}))
        logger.setLevel(level)
        logger.handlers, logger.propagate, logger.disabled = handlers, True, disabled

    def close(self) -> None:
        """Give the loggers back and write what is left."""
        if self._before:
            logging.captureWarnings(False)
        while self._before:
            logger, before = self._before.pop()
            logger.setLevel(before.pop("level"))
            for name, value in before.items():
                setattr(logger, name, value)
        self._writer.close()
