"""E-mail addresses.

The sign in the middle is looked for, then the domain behind and the name before it: prose has
few signs, this costs next to nothing, and no run of letters is ever tried twice.
"""

from __future__ import annotations

import re

from gateway.policy.redaction.rule import Rule, words

_LETTER = "A-Za-z0-9\u00c0-\u024f"
"""ASCII and accented Latin: an address may stand in Chinese text without a blank."""
_SIGN = re.compile(
    rf"(?:[@\uff20]|%40)([{_LETTER}][{_LETTER}-]{{0,62}}+(?:\.[{_LETTER}][{_LETTER}-]{{0,62}}+)++)"
)
_NAME = re.compile(rf"[{_LETTER}._%+'-]++")
_END = re.compile(r"(?:xn--[A-Za-z0-9-]{2,59}|[A-Za-z]{2,24})(?![A-Za-z0-9])")
_ESCAPE = re.compile(r"u[0-9A-Fa-f]{4}|[abfnrtv0]")
_NAME_LENGTH = 128

FILES = words(
    "avif bmp c cfg conf cpp cs css csv exe gif go gz h htm html ico ini jpeg jpg js json jsx "
    "lock log mjs mp3 mp4 pdf php png rb sh so sql svg tar toml ts tsx txt vue wav "
    "webm webp xml yaml yml zip"
)
"""What follows the dot of a file (``logo@2x.png``), not of a domain. Endings that are also
countries with many addresses are left out."""
_CODE_USERS = frozenset({"git", "hg", "svn"})
"""``git@github.com:team/repo`` names a repository, not a person."""


def _address(match: re.Match[str]) -> tuple[int, int] | None:
    text, sign = match.string, match.start()
    start = _name_start(text, sign)
    end = None if start == sign else _domain_end(text, match.start(1), match.end(1))
    if end is None:
        return None
    if text[end : end + 1] == "(":
        return None  # a call: matrix@other.transpose()
    if text[start - 1 : start] == ":" and "://" in text[max(0, start - _NAME_LENGTH) : start]:
        return None  # the password in a URL, which is a secret
    if text[start:sign] in _CODE_USERS and text[end : end + 1] in (":", "/"):
        return None
    return start, end


def _domain_end(text: str, start: int, end: int) -> int | None:
    """Where the domain ends: behind the last label that can end one."""
    dot = text.rfind(".", start, end)
    while dot > start:
        last = _END.match(text, dot + 1, end)
        if last is not None:
            return None if last.group().lower() in FILES else last.end()
        dot = text.rfind(".", start, dot)
    return None


def _name_start(text: str, sign: int) -> int:
    """Where the name before the sign begins; ``sign`` itself if there is none."""
    window = text[max(0, sign - _NAME_LENGTH) : sign]
    name = _NAME.match(window[::-1])
    if name is None:
        return sign
    start = sign - name.end()
    if start > 0 and text[start - 1] == "\\":
        escape = _ESCAPE.match(text, start, sign)  # "\nbob@…" in source code or JSON
        start = start if escape is None else escape.end()
    while start < sign and not (text[start].isalnum() or text[start] == "_"):
        start += 1
    return start


RULES = (Rule("EMAIL", _SIGN, _address, hints=("@", "\uff20", "%40")),)
