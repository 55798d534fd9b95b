"""How much of a tool's output a model is shown: the head and the tail, and a mark where it was cut.

Must not know what the text is about.
"""

from __future__ import annotations

from dataclasses import replace

from adapters.canonical.parts import Media, Text
from gateway.tools.base import ToolOutcome

HEAD = 2 / 3
"""The share of the room that the head gets: most texts say first what they are, and some say last
how they ended."""


def capped(text: str, cap: int) -> str:
    """``text`` in at most ``cap`` characters. What fits is returned untouched, so that capping
    twice is capping once."""
    if len(text) <= cap:
        return text
    mark = f"\n[... {len(text) - cap} characters and more were cut here ...]\n"
    room = cap - len(mark)
    if room <= 0:
        return text[: max(cap, 0)]
    head = int(room * HEAD)
    tail = room - head
    return text[:head] + mark + text[len(text) - tail :]


def capped_outcome(outcome: ToolOutcome, cap: int) -> ToolOutcome:
    """``outcome`` with at most ``cap`` characters of text, counted over all its parts in their
    order. Pictures are left as they are: whoever made them bounds them."""
    left = cap
    parts: list[Text | Media] = []
    for part in outcome.content:
        if isinstance(part, Text):
            part = part if len(part.text) <= left else replace(part, text=capped(part.text, left))
            left -= len(part.text)
        parts.append(part)
    return replace(outcome, content=tuple(parts))
