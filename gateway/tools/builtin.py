"""The tools that every gateway has: the time, and a calculator.

``http_get``, the third one built in, is off until it is configured; it stands in
:mod:`gateway.tools.http`. Must not know settings.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any
from zoneinfo import ZoneInfo

from adapters.canonical.clock import Clock
from adapters.canonical.parts import Text
from gateway.tools.base import Tool, ToolContext, ToolOutcome, ToolSpec
from gateway.tools.calculator import FUNCTIONS, MOST_CHARACTERS, NoResult, evaluate


class Builtin:
    """A tool whose work is done at once, in the event loop."""

    __slots__ = ("_answer", "spec")

    def __init__(self, spec: ToolSpec, answer: Callable[[Mapping[str, Any]], ToolOutcome]) -> None:
        self.spec = spec
        self._answer = answer

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
        """Answer; neither tool waits for anything."""
        return self._answer(arguments)


def builtins(clock: Clock) -> list[Tool]:
    """The tools that are on without being configured."""
    return [
        Builtin(TIME, lambda arguments: _time(arguments, clock.wall())),
        Builtin(CALCULATOR, _calculate),
    ]


TIME = ToolSpec(
    name="time",
    description=(
        "Tells the current date and time, with weekday and offset from UTC. "
        "Use it whenever an answer depends on today's date."
    ),
    parameters={
        "type": "object",
        "properties": {
            "timezone": {
                "type": "string",
                "maxLength": 100,
                "description": "IANA name such as Europe/Berlin; left out, UTC",
            }
        },
        "additionalProperties": False,
    },
    kind="builtin",
    read_only=True,
)

CALCULATOR = ToolSpec(
    name="calculator",
    description=(
        "Calculates an arithmetic expression exactly, e.g. (17.5 * 3 - 2) / 4 or 2 ** 64. "
        f"Functions: {', '.join(FUNCTIONS)}; constants: pi, e."
    ),
    parameters={
        "type": "object",
        "properties": {"expression": {"type": "string", "maxLength": MOST_CHARACTERS}},
        "required": ["expression"],
        "additionalProperties": False,
    },
    kind="builtin",
    read_only=True,
)


def _time(arguments: Mapping[str, Any], now: float) -> ToolOutcome:
    name = arguments.get("timezone")
    try:
        zone = dt.UTC if name is None else ZoneInfo(str(name))
    except (ValueError, OSError, LookupError):  # a file name, a folder, no such zone
        text = "There is no such time zone; use an IANA name such as Europe/Berlin."
        return ToolOutcome((Text(text),), is_error=True)
    moment = dt.datetime.fromtimestamp(int(now), zone)
    text = f"{moment:%A}, {moment.isoformat()} ({name or 'UTC'})"
    return ToolOutcome((Text(text),), structured={"iso": moment.isoformat(), "unix": int(now)})


def _calculate(arguments: Mapping[str, Any]) -> ToolOutcome:
    try:
        return ToolOutcome((Text(evaluate(str(arguments["expression"]))),))
    except NoResult as error:
        return ToolOutcome((Text(str(error)),), is_error=True)
