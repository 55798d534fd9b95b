"""A provider's words without its caller's.

Errors quote what they complain about. The caller may read that, since it is its own; a log line or
a row of the ledger may not hold it (promise 13). Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import orjson

MASK = "[…]"

SHORTEST_VALUE = 12
"""Characters: shorter strings of a request are its protocol's words (``json_schema``)."""

SHORTEST_TOKEN = 6
RUN = 4
"""A word that only content has is masked from this length on; ordinary words from this many in a
row."""

LONGEST_CONTENT = 2_000_000
"""Characters of a request that are searched."""

_TOKEN = re.compile(r"\S+")
_EDGES = "'\"`.,:;!?()[]{}<>«»“”‘’"
_TELLING = re.compile(r"[\d_@/\\.-]|[^\x00-\x7f]")


def without_echo(words: str, body: bytes) -> str:
    """``words`` with everything masked that looks like a quotation of the request ``body``.

    :param body: the JSON that the provider was sent.
    """
    content = _content(body)
    tokens = list(_TOKEN.finditer(words))
    bare = [token[0].strip(_EDGES) for token in tokens]
    hidden = {n for n, word in enumerate(bare) if _is_quoted(word, content)}
    for start in range(len(bare) - RUN + 1):
        run = words[tokens[start].start() : tokens[start + RUN - 1].end()].strip(_EDGES)
        if run in content:
            hidden.update(range(start, start + RUN))
    if not hidden:
        return words
    kept = [MASK if n in hidden else token[0] for n, token in enumerate(tokens)]
    first = zip([None, *kept], kept, strict=False)
    return " ".join(word for before, word in first if word != MASK or before != MASK)


def _is_quoted(word: str, content: str) -> bool:
    """Whether one word is enough to tell: it is no word of a language, and it was sent."""
    if len(word) < SHORTEST_TOKEN or _TELLING.search(word) is None:
        return False
    if word in content:
        return True
    if word.isascii():
        return False
    # a script without blanks: a part of the "word" is a quotation, too
    ends = range(len(word) - SHORTEST_TOKEN + 1)
    return any(word[n : n + SHORTEST_TOKEN] in content for n in ends)


def _content(body: bytes) -> str:
    """All strings that the request holds as values, but for the short ones."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    if isinstance(found, dict):
        found.pop("model", None)
    return "\n".join(_strings(found))[:LONGEST_CONTENT]


def _strings(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            if len(one) >= SHORTEST_VALUE:
                yield one
        elif isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
