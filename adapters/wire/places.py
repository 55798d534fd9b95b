"""Where a message and its parts stand in the caller's own body.

What an encoder leaves out or refuses is named as the caller wrote it (promise 12). Canonical
messages are flat lists of parts; Chat keeps calls and reasoning beside a message's content, and
Responses has items for them, several to a message. So places are counted out along the messages,
by the caller's protocol. Must not know what becomes of the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from adapters.canonical.parts import Dialect, Opaque, Part, Refusal, Text, Thinking, ToolCall
from adapters.canonical.parts import ToolResult as Result
from adapters.canonical.request import Message
from adapters.wire.names import CHAT, RESPONSES
from adapters.wire.openai_reasoning import field_of
from adapters.wire.openai_responses import is_content


class Place(NamedTuple):
    """The path of a message, and of each of its parts."""

    message: str
    parts: tuple[str, ...]


class Places:
    """Names the places of one request's messages, asked for in order.

    ``results`` is the name of the list in a tool result.
    """

    __slots__ = ("_items", "_origin", "results")

    def __init__(self, origin: Dialect) -> None:
        self._origin = origin
        self._items = 0
        self.results = "output" if origin == RESPONSES else "content"

    def plain(self, number: int) -> str:
        """The place of the caller's message ``number``, which :func:`plain_text` understands."""
        if self._origin != RESPONSES:
            return f"messages[{number}]"
        self._items += 1
        return f"input[{self._items - 1}]"

    def skip(self) -> None:
        """As :meth:`plain`, for whom the place is of no use."""
        self._items += 1

    def of(self, number: int, message: Message) -> Place:
        """The place of ``message``, the caller's message ``number``."""
        if self._origin == RESPONSES:
            return self._in_items(message)
        where = f"messages[{number}]"
        if self._origin == CHAT and message.role in _CHAT:
            return Place(where, tuple(_CHAT[message.role](where, message.parts)))
        return Place(where, tuple(f"{where}.content[{n}]" for n in range(len(message.parts))))

    def _in_items(self, message: Message) -> Place:
        first = self._items
        parts = tuple(self._items_of(message))
        self._items = max(self._items, first + 1)
        return Place(f"input[{first}]", parts)

    def _items_of(self, message: Message) -> Iterator[str]:
        """Words that follow each other are contents of one item; all else is its own."""
        content = 0
        for part in message.parts:
            if _has_item(part, message):
                self._items += 1 if content else 0
                content = 0
                yield f"input[{self._items}]"
                self._items += 1
            else:
                yield f"input[{self._items}].content[{content}]"
                content += 1
        self._items += 1 if content else 0


def plain_text(message: Message) -> str | None:
    """The text of a message that is nothing but one text, as most are; ``None`` for others. There
    is nothing about it that could be lost, so its place needs no name."""
    if len(message.parts) != 1 or message.name is not None or message.extras:
        return None
    part = message.parts[0]
    if type(part) is not Text or part.citations or part.extras:
        return None
    return part.text


def _has_item(part: Part, message: Message) -> bool:
    if isinstance(part, Opaque):
        return not is_content(part)
    if message.role == "assistant":
        return not isinstance(part, Text | Refusal)
    return isinstance(part, Result)


def _spoken(where: str, parts: tuple[Part, ...]) -> Iterator[str]:
    """An assistant's message of Chat."""
    content = calls = 0
    for part in parts:
        match part:
            case ToolCall():
                yield f"{where}.tool_calls[{calls}]"
                calls += 1
            case Thinking():
                yield f"{where}.{field_of(part)}"
            case Opaque(dialect="openai-chat"):
                yield f"{where}.{part.type}"
            case _:
                yield f"{where}.content[{content}]"
                content += 1


def _answered(where: str, parts: tuple[Part, ...]) -> Iterator[str]:
    """A tool's message of Chat: the message is the result."""
    return (where for _ in parts)


_CHAT: Mapping[str, Callable[[str, tuple[Part, ...]], Iterator[str]]] = {
    "assistant": _spoken,
    "tool": _answered,
}
"""Messages of Chat whose parts do not all stand in their content."""
