"""One row of the tables: a kind, the pattern of its candidates, and the proof.

A pattern only proposes. It must be linear: every repetition is possessive or bounded, and what
it matches is passed over whole when the proof fails, so no character is looked at over and over.
Patterns begin with a literal or a class wherever they can, since the engine then skips through
prose at the speed of ``memchr``; what stands *before* a candidate is the proof's matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from adapters.canonical.record import record


class Span(NamedTuple):
    """Characters ``start`` to ``end`` of a text are of ``kind``."""

    start: int
    end: int
    kind: str


class Finder(Protocol):
    """Whatever finds the values of one kind. ``across``: they may hold line breaks, so the text
    is never cut for it. ``by_words``: it is the words around that give a value away, so the same
    value may stand elsewhere without them."""

    @property
    def kind(self) -> str: ...
    @property
    def across(self) -> bool: ...
    @property
    def by_words(self) -> bool: ...
    def spans(self, text: str) -> Iterator[Span]:
        """Where they are, in order."""
        ...


Proof = Callable[["re.Match[str]"], "tuple[int, int] | None"]
"""From a candidate to where exactly the value stands, or ``None`` if it is none."""


def words(text: str) -> frozenset[str]:
    """A table of words that is written as text."""
    return frozenset(text.split())


def whole(match: re.Match[str]) -> tuple[int, int]:
    """The candidate as it is."""
    return match.span()


@record(frozen=True, slots=True)
class Rule:
    """``hints``: texts of which one must occur for the pattern to be tried at all; none: always."""

    kind: str
    pattern: re.Pattern[str]
    proof: Proof = whole
    hints: tuple[str, ...] = ()
    across: bool = False
    by_words: bool = False

    def spans(self, text: str) -> Iterator[Span]:
        """Every proven candidate, in order."""
        if self.hints and not any(hint in text for hint in self.hints):
            return
        search, proof = self.pattern.search, self.proof
        match = search(text)
        while match is not None:
            found = proof(match)
            if found is not None:
                yield Span(*found, self.kind)
            resume = match.end() if found is None else max(found[1], match.start() + 1)
            match = search(text, resume)
