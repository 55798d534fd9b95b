"""Finds everything in a text: the rules one after the other, what overlaps made one.

A long text is looked at in pieces, so that no single pattern holds the interpreter for long (case
P05). Must not know requests, nor what happens to what it finds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from gateway.policy.redaction import mail, numbers, phones, secrets
from gateway.policy.redaction.rule import Finder, Rule, Span

BUILT_IN: tuple[Rule, ...] = (
    *secrets.RULES,
    *mail.RULES,
    *numbers.RULES,
    *phones.RULES,
)
"""In order of precedence: where two overlap, the earlier names the kind."""
KINDS: tuple[str, ...] = tuple(dict.fromkeys(rule.kind for rule in BUILT_IN))
PIECE = 1 << 16
"""Characters that one pattern looks at in one go."""
_TOKEN = re.compile(r"[0-9A-Za-z_~+/=.-]++")
"""What a value that words give away is made of, where it stands alone."""
Found = tuple[int, int, str, int]
"""A span's start, end and kind, and the rank of the rule that found it."""
_LOOK_BACK = 4096
"""Characters at the end of a piece in which a good place to cut is looked for."""


class Scanner:
    """The rules of one configuration. Holds no text."""

    __slots__ = ("_by_words", "_local", "_wide", "kinds")

    def __init__(self, rules: Iterable[Finder] = BUILT_IN) -> None:
        ranked = tuple(enumerate(rules))
        self._wide = [(rank, rule) for rank, rule in ranked if rule.across]
        self._local = [(rank, rule) for rank, rule in ranked if not rule.across]
        self._by_words = frozenset(rank for rank, rule in ranked if rule.by_words)
        self.kinds = tuple(dict.fromkeys(rule.kind for _, rule in ranked))

    def find(self, text: str) -> list[Span]:
        """What is in ``text``, in order and without overlaps."""
        found: list[Found] = [
            (*span, rank) for rank, rule in self._wide for span in rule.spans(text)
        ]
        for offset, piece in _pieces(text):
            for rank, rule in self._local:
                for start, end, kind in rule.spans(piece):
                    found.append((start + offset, end + offset, kind, rank))
        if not found:
            return []
        return _merged(found + self._elsewhere(text, found))

    def _elsewhere(self, text: str, found: Sequence[Found]) -> list[Found]:
        """What only its words gave away, where it stands without them."""
        known = {text[s:e]: (kind, rank) for s, e, kind, rank in found if rank in self._by_words}
        if not known:
            return []
        again: list[Found] = []
        for token in _TOKEN.finditer(text):
            value = token.group().rstrip(".")
            if value in known:
                again.append((token.start(), token.start() + len(value), *known[value]))
        return again


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """``text`` cut where no value goes on: at a line break, else at a blank."""
    if len(text) <= PIECE:
        yield 0, text
        return
    start = 0
    while start < len(text):
        end = min(start + PIECE, len(text))
        if end < len(text):
            floor = end - _LOOK_BACK
            cut = max(text.rfind("\n", floor, end), floor)
            end = cut + 1 if cut > floor else max(text.rfind(" ", floor, end), end - 1) + 1
        yield start, text[start:end]
        start = end


def _merged(found: Sequence[Found]) -> list[Span]:
    """Overlapping spans as one that covers them all, of the kind with the best rank."""
    spans: list[Span] = []
    best = 0
    for start, end, kind, rank in sorted(found):
        if not spans or start >= spans[-1].end:
            spans.append(Span(start, end, kind))
            best = rank
            continue
        last = spans[-1]
        spans[-1] = Span(last.start, max(last.end, end), kind if rank < best else last.kind)
        best = min(best, rank)
    return spans
