"""What the books need to know of an answer, noted as it passes.

Must not know which dialect the provider speaks, nor what any of it costs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from adapters.canonical.completion import Completion
from adapters.canonical.events import (
    CONTENT,
    ArgumentsDelta,
    Event,
    Failed,
    Finished,
    PartAnnotated,
    PartStarted,
    Started,
    TextDelta,
    TextRun,
    ThinkingDelta,
    Usage,
    UsageReported,
)
from adapters.canonical.parts import Text, Thinking, ToolCall
from adapters.canonical.stage import Stage
from gateway.flow.gate import is_content


class Meter:
    """A stage that changes nothing and remembers what the books need.

    ``on_reasoning`` makes the stages that look at reasoning and at tool calls, and change nothing
    either. They are made and fed from the first read that has some, which most answers have not.
    """

    __slots__ = (
        "_now",
        "_watchers",
        "first_content",
        "model",
        "on_first_content",
        "on_reasoning",
        "output_bytes",
        "terminal",
        "usage",
    )

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._watchers: Sequence[Stage] = ()
        self.usage: Usage | None = None
        self.model: str | None = None
        self.output_bytes = 0
        self.first_content: float | None = None
        self.terminal: Finished | Failed | None = None
        self.on_first_content: Callable[[], None] | None = None
        self.on_reasoning: Callable[[], Sequence[Stage]] | None = None

    def feed(self, events: list[Event]) -> list[Event]:
        """Look at ``events`` and pass them on."""
        for event in events:
            take = _TAKES.get(type(event))
            if take is not None:
                take(self, event)
        for watcher in self._watchers:
            watcher.feed(events)
        return events

    def take(self, answer: Completion) -> None:
        """Look at an ordinary whole answer in one step: it is all text."""
        (text,) = answer.parts
        assert isinstance(text, Text)
        self.model, self.usage, self.terminal = answer.model, answer.usage, answer.terminal
        self.output_bytes = len(text.text.encode())
        self._begin()

    def _count_text(self, event: TextDelta | ArgumentsDelta | ThinkingDelta) -> None:
        text = event.text
        self.output_bytes += len(text) if text.isascii() else len(text.encode())
        if text and self.first_content is None:
            self._begin()

    def _begin(self) -> None:
        self.first_content = self._now()
        if self.on_first_content is not None:
            self.on_first_content()

    def _count_usage(self, event: UsageReported) -> None:
        self.usage = event.usage

    def _learn_model(self, event: Started) -> None:
        self.model = event.model

    def _start(self, event: PartStarted) -> None:
        head = event.head
        if isinstance(head, Text):
            return
        if self.first_content is None and is_content(event):
            self._begin()
        if isinstance(head, ToolCall):
            self.output_bytes += len(head.name)
            self._wake(event)
        elif isinstance(head, Thinking):
            self._wake(event)

    def _wake(self, event: Event) -> None:
        """From here on there is something to see for whoever looks at reasoning."""
        make, self.on_reasoning = self.on_reasoning, None
        if make is not None:
            self._watchers = make()

    def _end(self, event: Finished | Failed) -> None:
        self.terminal = event

    def _count_run(self, event: TextRun) -> None:
        self.output_bytes += event.size


_TAKES: Mapping[type, Callable[[Meter, Any], None]] = {
    **dict.fromkeys(CONTENT, Meter._count_text),
    UsageReported: Meter._count_usage,
    Started: Meter._learn_model,
    PartStarted: Meter._start,
    PartAnnotated: Meter._wake,
    Finished: Meter._end,
    Failed: Meter._end,
    TextRun: Meter._count_run,
}
"""What the books need of each kind of event."""
