"""The parts that messages and answers are made of.

A part is a frozen value. It must not know any vendor's JSON; what a vendor adds beyond the
canonical fields travels in ``extras`` and is sent on only to the dialect it came from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, NoReturn

from adapters.canonical.record import record

Dialect = Literal["openai-chat", "openai-responses", "anthropic-messages"]


class _Nothing(dict[str, Any]):
    """A dict that stays empty. Hashable, so that Python 3.11 takes it as a dataclass default."""

    __slots__ = ()
    __hash__ = object.__hash__  # type: ignore[assignment]

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("NO_EXTRAS is shared and stays empty")

    __setitem__ = update = setdefault = __ior__ = _refuse


NO_EXTRAS: Mapping[str, Any] = _Nothing()
"""The empty ``extras``, shared so that a part without any costs no allocation."""


@record(frozen=True, slots=True)
class Url:
    """Media behind a URL. The gateway never fetches it (design section 9)."""

    url: str


@record(frozen=True, slots=True)
class Inline:
    """Media sent along: ``data`` is base64 text exactly as the caller sent it."""

    media_type: str
    data: str


@record(frozen=True, slots=True)
class FileRef:
    """Media uploaded to the provider earlier, by the provider's own file id."""

    file_id: str


Source = Url | Inline | FileRef


@record(frozen=True, slots=True)
class Text:
    """Plain text. ``citations`` are kept as the provider's own objects."""

    text: str
    citations: tuple[Mapping[str, Any], ...] = ()
    extras: Mapping[str, Any] = NO_EXTRAS


@record(frozen=True, slots=True)
class Media:
    """An image, a document or a sound."""

    kind: Literal["image", "file", "audio"]
    source: Source
    filename: str | None = None
    detail: str | None = None
    extras: Mapping[str, Any] = NO_EXTRAS


@record(frozen=True, slots=True)
class Thinking:
    """Reasoning that the model shows, seals, or both.

    ``signature`` proves shown text (Anthropic). ``sealed`` is reasoning that only its maker
    can read: Anthropic's redacted thinking, OpenAI's encrypted content. Both survive a round
    trip byte for byte and go back only to ``dialect``. ``id`` is the provider's item id.
    ``summary`` splits ``text`` as OpenAI sent it (``None``: the text is one piece).
    """

    text: str
    signature: str | None = None
    sealed: str | None = None
    dialect: Dialect | None = None
    id: str | None = None
    summary: tuple[str, ...] | None = None
    extras: Mapping[str, Any] = NO_EXTRAS


@record(frozen=True, slots=True)
class ToolCall:
    """A call that the model asks for. ``arguments`` is the raw string, never parsed here.

    ``kind`` is ``custom`` for OpenAI's free-form tools, whose ``arguments`` are plain text.
    """

    call_id: str
    name: str
    arguments: str
    kind: Literal["function", "custom"] = "function"
    extras: Mapping[str, Any] = NO_EXTRAS


@record(frozen=True, slots=True)
class ToolResult:
    """What a tool gave back for ``call_id``; ``content`` may hold images.

    ``is_error`` is ``None`` where the caller's dialect can't say.
    """

    call_id: str
    content: tuple[Text | Media | Opaque, ...]
    is_error: bool | None = None
    kind: Literal["function", "custom"] = "function"
    extras: Mapping[str, Any] = NO_EXTRAS


@record(frozen=True, slots=True)
class Refusal:
    """The model's own words for declining."""

    text: str
    extras: Mapping[str, Any] = NO_EXTRAS


@record(frozen=True, slots=True)
class Opaque:
    """A block that the canonical words do not know: carried whole, shown only to its dialect."""

    dialect: Dialect
    type: str
    data: Mapping[str, Any] = field(default_factory=dict)


Part = Text | Media | Thinking | ToolCall | ToolResult | Refusal | Opaque
