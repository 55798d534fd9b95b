"""What happens while an answer arrives: the one vocabulary between all dialects.

The grammar stands in :mod:`adapters.canonical.grammar`. Events are values; the decoders make
them, stages pass them on, encoders write them. ``Verbatim`` is the exception to "meaning
only": it carries the provider's own bytes beside the events that it decodes to, so that a
caller of the same dialect can be given exactly what the provider sent. A stage that changes
any event must drop every ``Verbatim`` of the stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from adapters.canonical.faults import Fault
from adapters.canonical.parts import NO_EXTRAS, Dialect, Part
from adapters.canonical.record import record

Reason = Literal[
    "stop",
    "stop_sequence",
    "tool_calls",
    "length",
    "context_window",
    "content_filter",
    "refusal",
    "pause",
    "unknown",
]
"""Why a finished answer ended. ``pause`` and ``unknown`` are never shown as a plain ``stop``."""


@record(frozen=True, slots=True)
class Usage:
    """Tokens in disjoint classes; ``None`` is "the provider did not say", never zero.

    ``input`` excludes what was read from or written to the cache; ``output`` includes
    ``reasoning``. ``cache_write_1h`` is the part of ``cache_write`` at the one-hour price.
    ``largest`` is the largest of several prompts that are summed here, by which the steps of a
    price go. ``raw`` is the provider's own object, for callers of the same dialect.
    ``invalid`` marks numbers that were refused (negative, fractional, absurd).
    """

    input: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cache_write_1h: int | None = None
    raw: Mapping[str, Any] | None = None
    invalid: bool = False
    largest: int | None = None

    @property
    def prompt(self) -> int | None:
        """All input tokens: uncached, read and written; ``None`` if the input is unknown."""
        if self.input is None:
            return None
        return self.input + (self.cache_read or 0) + (self.cache_write or 0)


@record(frozen=True, slots=True)
class Started:
    """The provider began an answer. ``created`` is Unix seconds.

    ``dialect`` is the protocol it came in: a caller of the same one is given the provider's
    own id and usage object, every other caller ours.
    """

    id: str | None
    model: str | None
    created: int | None = None
    extras: Mapping[str, Any] = NO_EXTRAS
    dialect: Dialect | None = None


@record(frozen=True, slots=True)
class PartStarted:
    """Part ``index`` (dense, zero-based, by first appearance) opens with ``head``.

    The head is the part with its text or arguments still empty; ``Opaque`` and ``Media`` heads
    are whole. ``choice`` is the answer's number where the provider gives several.
    """

    index: int
    head: Part
    choice: int = 0


@record(frozen=True, slots=True)
class TextDelta:
    """More text for a ``Text`` or ``Refusal`` part."""

    index: int
    text: str


@record(frozen=True, slots=True)
class ThinkingDelta:
    """More text for a ``Thinking`` part. ``section`` numbers OpenAI's summary parts."""

    index: int
    text: str
    section: int = 0


@record(frozen=True, slots=True)
class ArgumentsDelta:
    """More of a ``ToolCall``'s raw arguments."""

    index: int
    text: str


@record(frozen=True, slots=True)
class PartAnnotated:
    """Something learned about an open part.

    ``key``: ``citation`` (appended), ``signature``, ``sealed``, ``id`` (the last one wins),
    ``logprobs`` (a list, appended), ``data`` (the final data of an ``Opaque``), ``extras``
    (merged).
    """

    index: int
    key: Literal["citation", "signature", "sealed", "id", "logprobs", "data", "extras"]
    value: Any


@record(frozen=True, slots=True)
class PartEnded:
    """Part ``index`` is complete."""

    index: int


@record(frozen=True, slots=True)
class UsageReported:
    """Cumulative: the last one wins."""

    usage: Usage


@record(frozen=True, slots=True)
class OpaqueEvent:
    """A stream event that the canonical words do not know; shown only to its own dialect."""

    dialect: Dialect
    name: str
    data: Mapping[str, Any]


@record(frozen=True, slots=True)
class Verbatim:
    """The provider's own frame (``name`` and ``data`` of an SSE event) or whole body
    (``name`` empty), followed in the same list by the events it decodes to."""

    dialect: Dialect
    name: str
    data: bytes
    json: Any


@record(frozen=True, slots=True, eq=False)
class Pattern:
    """How a provider writes a plain delta of text in one stream: the same bytes around each
    text, with everything that makes an SSE event. ``joint`` is what stands between two texts;
    ``sample`` is such a frame, with a mark for its text."""

    head: bytes
    tail: bytes
    joint: bytes
    sample: Verbatim


@record(frozen=True, slots=True)
class TextRun:
    """More text for part ``index``: plain deltas, one frame after another in the provider's own
    bytes, and ``size`` bytes of text in them.

    Stands for the ``Verbatim`` and the ``TextDelta`` of each; made only where all that happens
    to text is that it is passed on.
    """

    index: int
    data: bytes
    size: int
    pattern: Pattern


@record(frozen=True, slots=True)
class Finished:
    """The proven end of an answer. ``stop`` is the stop sequence that ended it, if one did.

    ``choices`` holds the reasons of further choices as ``{number: (reason, raw_reason)}``.
    """

    reason: Reason
    raw_reason: str | None = None
    stop: str | None = None
    extras: Mapping[str, Any] = NO_EXTRAS
    choices: Mapping[int, tuple[Reason, str | None]] = NO_EXTRAS  # type: ignore[assignment]


@record(frozen=True, slots=True)
class Failed:
    """The proven failure of an answer."""

    fault: Fault


Terminal = Finished | Failed
Event = (
    Started
    | PartStarted
    | TextDelta
    | ThinkingDelta
    | ArgumentsDelta
    | PartAnnotated
    | PartEnded
    | UsageReported
    | OpaqueEvent
    | Verbatim
    | TextRun
    | Finished
    | Failed
)

CONTENT = (TextDelta, ArgumentsDelta, ThinkingDelta)
"""The deltas that commit an answer (promise 2); so does a ``PartStarted`` of a tool call or of
a whole opaque part."""
