"""JSON text as a person reads it: its strings for what they mean, its numbers, nothing else.

Tool arguments are carried as raw text (promise 11: bytes that need no change get none), and
``\\u0040`` must hide nothing. Broken JSON, and JSON that was cut, is read as far as it goes.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from adapters.wire.json import dumps, loads

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|-?\d[\d.eE+-]*+', re.DOTALL)
"""A string, also one that was cut, or a number."""


def changed(raw: str, change: Callable[[str], str]) -> str:
    """``raw`` with each string and number passed through ``change``; what it leaves alone keeps
    its bytes, and a number that it does not leave alone becomes a string. Of text that is no
    JSON, what stands between is passed through it, too."""
    pieces: list[str] = []
    whole, done = is_json(raw), 0
    for token in _TOKEN.finditer(raw):
        between = raw[done : token.start()]
        pieces += (between if whole or not between else change(between), _token(token, change))
        done = token.end()
    rest = raw[done:]
    return "".join((*pieces, rest if whole or not rest else change(rest)))


def _token(match: re.Match[str], change: Callable[[str], str]) -> str:
    token = match.group()
    try:
        value = loads(token.encode("utf-8", "surrogatepass")) if token[0] == '"' else token
    except ValueError:  # cut in its middle, or no JSON: as it stands
        return change(token)
    new = change(value)
    return token if new == value else dumps(new).decode()


def escaped(text: str) -> str:
    """``text`` as it stands inside a JSON string."""
    return dumps(text).decode()[1:-1]


def is_json(raw: str) -> bool:
    """Whether ``raw`` is one JSON value."""
    try:
        loads(raw.encode("utf-8", "surrogatepass"))
    except ValueError:
        return False
    return True
