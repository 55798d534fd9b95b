"""The simulator's own words: what was asked, what is answered, what goes onto the wire.

A provider's point of view and nobody else's: these types know nothing of the gateway's
canonical words, so that the simulator stays an independent judge of what the gateway sends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from adapters.canonical.record import record

Body = Mapping[str, Any]
"""A parsed JSON body."""


@record(frozen=True, slots=True)
class ToolSpec:
    """A tool that the model may call; ``free_form`` ones take text instead of JSON."""

    name: str
    schema: Mapping[str, Any]
    free_form: bool = False


@record(frozen=True, slots=True)
class Media:
    """An image, file or sound in the prompt. ``size`` is in bytes, unknown for a link."""

    kind: str
    mime: str
    size: int | None


@record(frozen=True, slots=True)
class Turn:
    """One message as the provider saw it: text only, tools' results included."""

    role: str
    text: str


@record(frozen=True, slots=True)
class Result:
    """A tool's result that the last turn brought."""

    call_id: str
    name: str
    text: str
    is_error: bool = False


@record(frozen=True, slots=True)
class Ask:
    """One request, in the terms that decide the answer.

    ``prompt`` is the text of the last user message. ``results`` are the tool results after it,
    if the conversation ends in them. ``called`` names the tools that were called since.
    ``choice`` is ``auto none required`` or ``=NAME``. ``limit`` is in tokens. ``cached`` lists
    the cacheable prefixes as (key, tokens, lifetime in seconds).
    """

    model: str
    stream: bool
    turns: tuple[Turn, ...] = ()
    prompt: str = ""
    results: tuple[Result, ...] = ()
    called: tuple[str, ...] = ()
    media: tuple[Media, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    choice: str = "auto"
    parallel: bool = True
    schema: Mapping[str, Any] | None = None
    json_object: bool = False
    thinks: bool = False
    limit: int | None = None
    stops: tuple[str, ...] = ()
    choices: int = 1
    tokens: int = 1
    cached: tuple[tuple[str, int, int], ...] = ()

    @property
    def turn(self) -> int:
        """How many answers the conversation already holds."""
        return sum(1 for turn in self.turns if turn.role == "assistant")


@record(frozen=True, slots=True)
class Say:
    """Text. ``pieces`` fixes how a stream cuts it; otherwise it is cut at words."""

    text: str
    pieces: tuple[str, ...] = ()


@record(frozen=True, slots=True)
class Think:
    """Reasoning. A ``hidden`` one comes sealed, without readable text."""

    text: str
    hidden: bool = False


@record(frozen=True, slots=True)
class Call:
    """A tool call; ``arguments`` go out byte for byte, valid JSON or not."""

    name: str
    arguments: str = "{}"
    id: str | None = None
    free_form: bool = False


@record(frozen=True, slots=True)
class Refuse:
    """A refusal in the model's words."""

    text: str


Part = Say | Think | Call | Refuse

Stop = Literal["stop", "length", "sequence", "tools", "filter", "refusal", "pause", "context"]


@record(frozen=True, slots=True)
class Usage:
    """Tokens as the vendors count them: ``prompt`` includes ``read`` and ``written``.

    ``written_1h`` is the share of ``written`` that stays for an hour.
    """

    prompt: int
    output: int
    reasoning: int = 0
    read: int = 0
    written: int = 0
    written_1h: int = 0


@record(frozen=True, slots=True)
class Answer:
    """What the model says. ``stop`` follows from the parts where it is not given.

    ``pace`` is seconds before each delta. ``usage`` is counted where it is not given;
    ``reports_usage=False`` leaves it out of the answer. ``sequence`` is the stop sequence met.
    ``reason`` goes out in the place of the vendor's word for the stop.
    """

    parts: tuple[Part, ...] = ()
    stop: Stop | None = None
    usage: Usage | None = None
    reports_usage: bool = True
    pace: float = 0.0
    sequence: str | None = None
    reason: str | None = None

    @property
    def ending(self) -> Stop:
        """Why the answer ends."""
        if self.stop is not None:
            return self.stop
        if any(isinstance(part, Call) for part in self.parts):
            return "tools"
        return "refusal" if any(isinstance(part, Refuse) for part in self.parts) else "stop"

    @property
    def text(self) -> str:
        """All text parts, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, Say))


@record(frozen=True, slots=True)
class Trouble:
    """An answer that is an error: the status and the vendors' words for it.

    ``type`` is Anthropic's error type, ``code`` OpenAI's code; ``openai_type`` OpenAI's type.
    """

    status: int
    message: str
    type: str = "invalid_request_error"
    code: str | None = None
    param: str | None = None
    openai_type: str = "invalid_request_error"
    headers: Mapping[str, str] = field(default_factory=dict)


class Refused(Exception):
    """The provider does not take this request; ``trouble`` says why."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.message)
        self.trouble = trouble


FrameKind = Literal["open", "delta", "mark", "ping", "usage", "terminal", "done", "body"]
"""What a frame does in its stream: faults aim at kinds, never at a vendor's names."""


@record(frozen=True, slots=True)
class Frame:
    """One SSE event, or a whole body, as bytes."""

    kind: FrameKind
    data: bytes


@record(frozen=True, slots=True)
class Wait:
    """Say nothing for ``seconds``."""

    seconds: float


@record(frozen=True, slots=True)
class Raw:
    """Bytes past all framing, ``times`` times."""

    data: bytes
    times: int = 1


@record(frozen=True, slots=True)
class Drop:
    """End the connection: ``reset`` with a TCP reset, else with an ordinary close."""

    reset: bool = False


Step = Frame | Wait | Raw | Drop


@record(frozen=True, slots=True)
class Reply:
    """An HTTP answer as steps. ``head=False``: the steps bring their own head, or none.

    ``delay`` is seconds before the head. ``length`` overrides the Content-Length of a body;
    streams are chunked.
    """

    status: int
    headers: Mapping[str, str]
    steps: tuple[Step, ...]
    stream: bool = False
    head: bool = True
    length: int | None = None
    delay: float = 0.0
