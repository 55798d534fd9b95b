"""Calls of free-form tools from models that have functions only, as a stage.

Where a protocol has no free-form tools, such a tool is sent as a function of one text. The caller
asked for free-form input and gets it: what the model wrote as an object is shown as the text in it,
in one piece, because a text that is cut inside an escape means something else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from adapters.canonical.events import ArgumentsDelta, Event, PartEnded, PartStarted, Verbatim
from adapters.canonical.parts import ToolCall
from adapters.canonical.request import OpaqueTool, Request
from adapters.wire.json import loads

TEXT = "input"
"""The property that holds the text."""


def freeform(request: Request) -> frozenset[str]:
    """The names of the request's free-form tools."""
    return frozenset(
        tool.name
        for tool in request.tools or ()
        if isinstance(tool, OpaqueTool) and tool.type == "custom" and tool.name is not None
    )


class Freeform:
    """The stage of one attempt. :param names: the tools that the caller knows as free-form."""

    __slots__ = ("_names", "_said")

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._said: dict[int, list[str]] = {}

    def feed(self, events: list[Event]) -> list[Event]:
        """``events`` with free-form calls in place of functions of that name."""
        if not self._said and not any(map(self._stands_for, events)):
            return events
        shown = (one for event in events for one in self._shown(event))
        return [event for event in shown if not isinstance(event, Verbatim)]

    def _stands_for(self, event: Event) -> bool:
        if not isinstance(event, PartStarted) or not isinstance(event.head, ToolCall):
            return False
        return event.head.kind == "function" and event.head.name in self._names

    def _shown(self, event: Event) -> Iterator[Event]:
        if self._stands_for(event):
            assert isinstance(event, PartStarted)
            assert isinstance(event.head, ToolCall)
            self._said[event.index] = []
            yield replace(event, head=replace(event.head, kind="custom"))
        elif isinstance(event, ArgumentsDelta) and event.index in self._said:
            self._said[event.index].append(event.text)
        elif isinstance(event, PartEnded) and event.index in self._said:
            text = _text("".join(self._said.pop(event.index)))
            if text:
                yield ArgumentsDelta(event.index, text)
            yield event
        else:
            yield event


def _text(arguments: str) -> str:
    """The text in ``arguments``; what is no such object (a cut one) is shown as it came."""
    try:
        found = loads(arguments.encode())
    except ValueError:
        return arguments
    text = found.get(TEXT) if isinstance(found, dict) else None
    return text if isinstance(text, str) else arguments
