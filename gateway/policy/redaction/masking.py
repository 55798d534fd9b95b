"""One call's placeholders: which value stands behind which, for as long as the call lasts.

The same value gets the same placeholder throughout a call, so that the model can still tell two
people apart. The map lives in memory only and dies with the call; its ``repr`` shows counts.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from gateway.policy.redaction.rule import Span
from gateway.policy.redaction.scan import Scanner

LITERAL = "TEXT"
"""The kind of what already looked like a placeholder when the caller wrote it."""
_PLACEHOLDER = re.compile(r"<[A-Z][A-Z0-9_]*+(?<=\d)>")
_BORDER = "\x00"
"""Between texts that are looked at together: belongs to no value."""


class Piece(NamedTuple):
    """A text to look at. ``ours``: it came out of the gateway, so a placeholder in it is one.
    ``signed``: its maker takes it back only as he wrote it."""

    text: str
    ours: bool = False
    signed: bool = False


class Masking:
    """What has been masked in one call.

    :param reversible: whether originals are put back. What the caller wrote in the form of a
        placeholder is then masked itself, so that every placeholder that goes out is ours.

    ``torn`` are the signed texts that hold values of the model's own: masked, they are no longer
    what was signed.
    """

    __slots__ = (
        "_numbers",
        "_placeholders",
        "_reversible",
        "_scanner",
        "counts",
        "originals",
        "torn",
    )

    def __init__(self, scanner: Scanner, *, reversible: bool) -> None:
        self._scanner = scanner
        self._reversible = reversible
        self._placeholders: dict[tuple[str, str], str] = {}
        self._numbers: dict[str, int] = {}
        self.originals: dict[str, str] = {}
        self.counts: dict[str, int] = {}
        self.torn: set[str] = set()

    def __repr__(self) -> str:
        return f"Masking({self.counts})"

    @property
    def kinds(self) -> list[str]:
        """The kinds found so far."""
        return sorted(self.counts)

    @property
    def restores(self) -> bool:
        """Whether an answer may hold something to put back."""
        return self._reversible and bool(self.originals)

    def ledger(self) -> Mapping[str, int]:
        """How many values of each kind were replaced, under the ledger's names."""
        return {f"redacted_{kind.lower()}": number for kind, number in self.counts.items()}

    def texts(self, pieces: Sequence[Piece]) -> list[str]:
        """The pieces with every value replaced, in their order. They are looked at in one go,
        since most are short and looking costs more than reading."""
        spans = self._scanner.find(_BORDER.join(piece.text for piece in pieces))
        by_piece = _shared_out(spans, pieces)
        return [
            self._replaced(piece, by_piece.get(place, [])) for place, piece in enumerate(pieces)
        ]

    def again(self, text: str) -> str:
        """``text``, which holds values that were put back, with all of them replaced anew: those
        known from this call wherever they stand, and whatever else is found."""
        return self.texts([Piece(self.as_said(text), ours=True)])[0]

    def as_said(self, text: str) -> str:
        """``text``, which holds values that were put back, as the model wrote it."""
        for placeholder, value in sorted(self.originals.items(), key=lambda pair: -len(pair[1])):
            text = text.replace(value, placeholder)
        return text

    def original(self, text: str) -> str:
        """``text`` with the values of this call put back."""
        return _PLACEHOLDER.sub(
            lambda match: self.originals.get(match.group(), match.group()), text
        )

    def _replaced(self, piece: Piece, spans: list[Span]) -> str:
        text = piece.text
        if self._reversible and not piece.ours and "<" in text:
            spans = [*_with_literals(text, spans)]
        if not spans:
            return text
        parts: list[str] = []
        done, known = 0, len(self.originals)
        for start, end, kind in spans:
            parts += (text[done:start], self._placeholder(kind, text[start:end]))
            done = end
        if piece.signed and (not self._reversible or len(self.originals) > known):
            self.torn.add(text)
        return "".join((*parts, text[done:]))

    def _placeholder(self, kind: str, value: str) -> str:
        if kind != LITERAL:
            self.counts[kind] = self.counts.get(kind, 0) + 1
        known = self._placeholders.get((kind, value))
        if known is None:
            number = self._numbers[kind] = self._numbers.get(kind, 0) + 1
            known = self._placeholders[(kind, value)] = f"<{kind}_{number}>"
            self.originals[known] = value
        return known


def _shared_out(spans: Sequence[Span], pieces: Sequence[Piece]) -> dict[int, list[Span]]:
    """The spans of the joined pieces by the piece that they are in, counted from its beginning;
    one that crosses a border belongs to both sides."""
    if not spans:
        return {}
    starts = [0, *accumulate(len(piece.text) + len(_BORDER) for piece in pieces)]
    found: dict[int, list[Span]] = {}
    for start, end, kind in spans:
        place = bisect_right(starts, start) - 1
        while place < len(pieces) and starts[place] < end:
            offset, length = starts[place], len(pieces[place].text)
            inside = Span(max(start - offset, 0), min(end - offset, length), kind)
            if inside.start < inside.end:
                found.setdefault(place, []).append(inside)
            place += 1
    return found


def _with_literals(text: str, spans: list[Span]) -> Iterator[Span]:
    """``spans`` in order, and between them what has the form of a placeholder."""
    done = 0
    for span in (*spans, Span(len(text), len(text), LITERAL)):
        for literal in _PLACEHOLDER.finditer(text, done, span.start):
            yield Span(*literal.span(), LITERAL)
        done = span.end
        if span.start < span.end:
            yield span
