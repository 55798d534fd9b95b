"""The last line of defence before a sink: known secrets never pass, whoever wrote the text.

Secrets should not get here at all (they live in ``settings.snapshot.Secret``); this filter is
for the day when one does, in an exception's text or a library's log line (fault kind K17).
Must not know who logs what.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from urllib.parse import quote

MASK = "***"

SHORTEST = 6
"""Characters: a shorter "secret" would blot out ordinary words, and protects nothing."""

_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = (
    # whatever was presented as a key, known to us or not
    ("earer", re.compile(r"(?i:\bbearer\s+)[^\s\"',;]+")),
    ("EARER", re.compile(r"(?i:\bbearer\s+)[^\s\"',;]+")),
    # the form of our own keys and of the largest providers'
    ("sk-", re.compile(r"\bsk-[A-Za-z0-9_-]{8,}")),
    # user and password in a URL
    ("://", re.compile(r"(?<=://)[^\s/@\"']+:[^\s/@\"']+(?=@)")),
)
"""What looks like a key. The literal guards its pattern: most lines hold none of them."""


def _escaped(text: str, *, ascii_only: bool) -> str:
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]


def _forms(secret: str) -> set[str]:
    """How ``secret`` may be written; none for one that is too short."""
    if len(secret) < SHORTEST:
        return set()
    once = {_escaped(secret, ascii_only=True), _escaped(secret, ascii_only=False)}
    twice = {_escaped(form, ascii_only=False) for form in once}
    return {secret, quote(secret, safe=""), *once, *twice}


def _longest_first(forms: set[str]) -> tuple[str, ...]:
    """A secret that contains another must go whole."""
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


class Scrubber:
    """Replaces registered values, and what has the shape of a key, by ``***``.

    Bounded by the configuration: what is registered are its secrets, and those that it replaced
    until :meth:`know` is told that they are gone.
    """

    __slots__ = ("_forms",)

    def __init__(self) -> None:
        self._forms: tuple[str, ...] = ()

    def register(self, secret: str) -> None:
        """From now on ``secret`` is replaced, also escaped for JSON (twice, as a body quoted in
        a line is) or for a URL."""
        self._forms = _longest_first({*_forms(secret), *self._forms})

    def know(self, secrets: Iterable[str]) -> None:
        """Replace ``secrets`` and none of those that were registered before."""
        self._forms = _longest_first({form for secret in secrets for form in _forms(secret)})

    def scrub(self, text: str) -> str:
        """``text`` without any secret."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, MASK)
        for literal, shape in _SHAPES:
            if literal in text:
                text = shape.sub(MASK, text)
        return text
