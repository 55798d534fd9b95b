"""Stop sequences for targets that have none, or not these: the gateway ends the answer itself.

What goes on at the provider is not waited for; its connection is let go with the answer's end,
and what was used is estimated. Texts alone are looked at: a stop sequence in reasoning or in a
tool call's arguments ends nothing, as with the providers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from adapters.canonical.events import (
    Event,
    Failed,
    Finished,
    PartEnded,
    PartStarted,
    TextDelta,
    UsageReported,
)
from adapters.canonical.parts import Dialect, Text
from adapters.canonical.request import Request
from gateway.settings.snapshot import Deployment

TAKES: Mapping[Dialect, Callable[[Sequence[str]], bool]] = {
    "openai-chat": lambda stop: len(stop) <= 4,
    "anthropic-messages": lambda stop: all(sequence.strip() for sequence in stop),
    "openai-responses": lambda stop: False,
}
"""Which stop sequences each protocol knows."""


def own_stops(request: Request, deployment: Deployment) -> tuple[Request, tuple[str, ...]]:
    """``request`` as the deployment takes it, and the sequences that the gateway watches for."""
    stop = request.sampling.stop
    if not stop:
        return request, ()
    facts = deployment.facts
    known = "stop" not in facts.refuses and facts.can("stop")
    if known and TAKES[deployment.provider.dialect](stop):
        return request, ()
    return replace(request, sampling=replace(request.sampling, stop=())), stop


class Stops:
    """The stage that ends an answer at the first of ``sequences``."""

    __slots__ = ("_cut", "_ended", "_longest", "_open", "_sequences", "_texts")

    def __init__(self, sequences: Sequence[str]) -> None:
        self._sequences = tuple(sequence for sequence in sequences if sequence)
        self._longest = max((len(sequence) for sequence in self._sequences), default=0)
        self._texts: dict[int, str] = {}
        """By open text: what is held back, because it may begin a sequence."""
        self._open: list[int] = []
        self._cut: str | None = None
        self._ended = False

    def feed(self, events: list[Event]) -> list[Event]:
        """Pass on all up to the first sequence, then end."""
        out: list[Event] = []
        for event in events:
            if self._cut is None:
                self._next(event, out)
            elif isinstance(event, UsageReported):
                out.append(event)  # of the same read: more than an estimate
        if self._cut is not None and not self._ended:
            self._ended = True
            out.append(Finished("stop_sequence", stop=self._cut))
        return out

    def _next(self, event: Event, out: list[Event]) -> None:
        match event:
            case TextDelta() if event.index in self._texts:
                self._text(event, out)
                return
            case PartStarted():
                self._open.append(event.index)
                if isinstance(event.head, Text) and event.choice == 0:
                    self._texts[event.index] = ""
            case PartEnded():
                self._open.remove(event.index)
                self._release(event.index, out)
            case Finished() | Failed():
                for index in tuple(self._texts):
                    self._release(index, out)
        out.append(event)

    def _text(self, event: TextDelta, out: list[Event]) -> None:
        text = self._texts[event.index] + event.text
        found = [(text.find(s), s) for s in self._sequences]
        # The one that is complete first, so that it makes no difference how the text was cut.
        hits = [(place + len(s), place, s) for place, s in found if place >= 0]
        if hits:
            _, place, self._cut = min(hits)
            self._say(event.index, text[:place], out)
            out.extend(PartEnded(index) for index in self._open)
            return
        held = self._held(text)
        self._texts[event.index] = text[len(text) - held :]
        self._say(event.index, text[: len(text) - held], out)

    def _held(self, text: str) -> int:
        """How many characters at the end of ``text`` may be the beginning of a sequence."""
        for length in range(min(self._longest - 1, len(text)), 0, -1):
            tail = text[-length:]
            if any(sequence.startswith(tail) for sequence in self._sequences):
                return length
        return 0

    def _release(self, index: int, out: list[Event]) -> None:
        self._say(index, self._texts.pop(index, ""), out)

    @staticmethod
    def _say(index: int, text: str, out: list[Event]) -> None:
        if text:
            out.append(TextDelta(index, text))
