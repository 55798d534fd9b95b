"""Reasoning in chat messages: ``reasoning_content``, ``reasoning`` and ``reasoning_details``.

OpenAI's chat protocol has no place for reasoning; these three fields are what compatible
servers and clients use. ``reasoning_content`` (or ``reasoning``) is the text for people.
``reasoning_details`` is a list of objects that must go back unchanged, because signatures and
sealed reasoning are in it. One detail is one canonical ``Thinking``, so that any client which
keeps the list, merged by ``index`` or not, gives every part back byte for byte.

Details that this house wrote are known by their ``format``, one of the three dialect names.
Others belong to a chat provider and are carried whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from adapters.canonical.parts import NO_EXTRAS, Dialect, Thinking

FORMATS: Mapping[str, Dialect] = {name: name for name in get_args(Dialect)}
"""``format`` values of our own details, and the dialect each goes back to."""

FOREIGN = "reasoning_details"
"""The extra of a ``Thinking`` that keeps a chat provider's own details."""
FIELD = "reasoning_field"
"""The extra that keeps which text field a chat provider or caller used, if the rarer one."""

PLAIN = "reasoning_content"
RARER = "reasoning"


def details(thoughts: Iterable[Thinking], first: int = 0) -> list[Mapping[str, Any]]:
    """The ``reasoning_details`` for ``thoughts``; ``first`` is the index of the first one.

    Plain text of a chat provider has none: ``reasoning_content`` says it all.
    """
    found: list[Mapping[str, Any]] = []
    for thinking in thoughts:
        foreign = thinking.extras.get(FOREIGN)
        if isinstance(foreign, list):
            found.extend(foreign)
        elif not _is_plain(thinking):
            found.append(_detail(thinking, first + len(found)))
    return found


def _is_plain(thinking: Thinking) -> bool:
    return (
        thinking.dialect in (None, "openai-chat")
        and thinking.signature is None
        and thinking.sealed is None
        and thinking.id is None
        and thinking.summary is None
    )


def _detail(thinking: Thinking, index: int) -> Mapping[str, Any]:
    detail: dict[str, Any] = {"format": thinking.dialect or "openai-chat", "index": index}
    if thinking.summary is not None:
        detail["type"] = "reasoning.summary"
        detail["summary"] = thinking.text
        if thinking.summary != (thinking.text,):
            detail["sections"] = list(thinking.summary)
    elif thinking.text or thinking.sealed is None:
        detail["type"] = "reasoning.text"
        detail["text"] = thinking.text
    else:
        detail["type"] = "reasoning.encrypted"
    for name, value in (
        ("id", thinking.id),
        ("signature", thinking.signature),
        ("data", thinking.sealed),
        ("extras", thinking.extras or None),
    ):
        if value is not None:
            detail[name] = value
    return detail


def field_of(thinking: Thinking) -> str:
    """The field of a chat message that ``thinking`` was read from."""
    if thinking.dialect == "openai-chat" and FOREIGN not in thinking.extras and _is_plain(thinking):
        return text_field(thinking)
    return FOREIGN


def text_field(thinking: Thinking) -> str:
    """The field for the plain text of ``thinking``: as it came, and never another one."""
    return RARER if thinking.extras.get(FIELD) == RARER else PLAIN


def thoughts(message: Mapping[str, Any]) -> list[Thinking]:
    """The ``Thinking`` parts of a chat message, a caller's or a provider's.

    Details win over the text, which repeats them for people.
    """
    given = message.get("reasoning_details")
    if given:
        return _from_details(given)
    for field in (PLAIN, RARER):
        text = message.get(field)
        if isinstance(text, str):
            extras = NO_EXTRAS if field == PLAIN else {FIELD: field}
            return [Thinking(text, dialect="openai-chat", extras=extras)]
    return []


def _from_details(given: Sequence[Any]) -> list[Thinking]:
    found: list[Thinking] = []
    foreign: list[Mapping[str, Any]] = []
    for detail in given:
        if not isinstance(detail, Mapping):
            continue
        dialect = FORMATS.get(_text(detail.get("format")) or "")
        if dialect is None:
            foreign.append(detail)
            continue
        if foreign:
            found.append(foreign_thinking(foreign))
            foreign = []
        found.append(_own(detail, dialect))
    if foreign:
        found.append(foreign_thinking(foreign))
    return found


def _own(detail: Mapping[str, Any], dialect: Dialect) -> Thinking:
    summary = detail.get("summary")
    text = summary if isinstance(summary, str) else detail.get("text")
    text = text if isinstance(text, str) else ""
    sections = detail.get("sections")
    split: tuple[str, ...] | None = None
    if isinstance(sections, list):
        split = tuple(section for section in sections if isinstance(section, str))
    elif isinstance(summary, str):
        split = (text,)
    extras = detail.get("extras")
    return Thinking(
        text,
        signature=_text(detail.get("signature")),
        sealed=_text(detail.get("data")),
        dialect=dialect,
        id=_text(detail.get("id")),
        summary=split,
        extras=extras if isinstance(extras, Mapping) else NO_EXTRAS,
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def foreign_thinking(given: Sequence[Mapping[str, Any]]) -> Thinking:
    """One ``Thinking`` for a chat provider's own details, kept whole beside their text."""
    return Thinking(readable(given), dialect="openai-chat", extras={FOREIGN: list(given)})


def readable(given: Sequence[Mapping[str, Any]]) -> str:
    """What of ``given`` people can read."""
    return "".join(
        detail[name]
        for detail in given
        for name in ("text", "summary")
        if isinstance(detail.get(name), str)
    )


def merged(given: list[dict[str, Any]], more: Iterable[Any]) -> None:
    """Add a stream's detail fragments to ``given``: same ``index`` and ``type`` continue one
    detail, whose texts are joined and whose other fields are the last ones that came."""
    for fragment in more:
        if not isinstance(fragment, Mapping):
            continue
        open_one = given[-1] if given else None
        if open_one is None or any(
            open_one.get(name) != fragment.get(name) for name in ("index", "type")
        ):
            given.append(dict(fragment))
            continue
        for name, value in fragment.items():
            before = open_one.get(name)
            if name in _JOINED and isinstance(before, str) and isinstance(value, str):
                open_one[name] = before + value
            elif value is not None or name not in open_one:
                open_one[name] = value


_JOINED = frozenset({"text", "summary", "data"})
