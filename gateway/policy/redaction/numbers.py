"""Payment cards, bank accounts, Chinese resident numbers and IP addresses: what can be proved.

The patterns take the shape, the proofs in :mod:`gateway.policy.redaction.checks` the rest.
"""

from __future__ import annotations

import re

from gateway.policy.redaction import checks
from gateway.policy.redaction.rule import Rule

_CARD = re.compile(
    r"""
    [2-68]\d{3}
    (?: \d{9,15}+ (?!\d)
      | (?= ([ -]) (?: \d{4}\1\d{4}\1\d{4} (\1\d{1,3})? | \d{6}\1\d{4,5} ) (?!\d) () )
    )
    """,
    re.ASCII | re.VERBOSE,
)
"""All digits in a row, or in the groups that are printed on cards. Groups only look ahead, so that
a card that begins with the second group is still found."""


def _card(match: re.Match[str]) -> tuple[int, int] | None:
    """The candidate, or what is left of it without a last group: an expiry date perhaps."""
    text, start = match.string, match.start()
    ends = (match.end(),) if match.start(3) < 0 else (match.start(3), match.start(2))
    for end in ends:
        digits = text[start:end].replace(match.group(1) or " ", "") if end > 0 else ""
        if digits and checks.card(digits) and checks.apart(text, start, end):
            return start, end
    return None


_IBAN = re.compile(
    r"[A-Za-z](?<![A-Za-z0-9_][A-Za-z])[A-Za-z]\d\d(?:[ -]?[A-Za-z0-9]{1,4}){3,9}+[A-Za-z0-9]*+",
    re.ASCII,
)


def _iban(match: re.Match[str]) -> tuple[int, int] | None:
    text, start = match.string, match.start()
    wanted = checks.IBAN_LENGTHS.get(text[start : start + 2].upper(), 0)
    end, number = start, ""
    while end < match.end() and len(number) < wanted:
        number += text[end] if text[end] not in " -" else ""
        end += 1
    proven = wanted > 0 and checks.iban(number.upper())
    return (start, end) if proven and checks.apart(text, start, end) else None


_CN_ID = re.compile(
    r"[1-8]\d{5} ?(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]) ?\d{3}[\dXx]",
    re.ASCII,
)


def _cn_id(match: re.Match[str]) -> tuple[int, int] | None:
    proven = checks.cn_id(match.group().replace(" ", ""))
    return match.span() if proven and checks.apart(match.string, *match.span()) else None


_IPV4 = re.compile(r"[0-9]\d{0,2}+\.\d{1,3}+\.\d{1,3}+\.\d{1,3}+", re.ASCII)
_VERSION = re.compile(
    r"(?:version|release|build|firmware|driver|v|ver|rev|section|chapter|clause|oid|版本|版本号|"
    r"固件|驱动|章节|升级到|更新到)(?:\s+(?:is|to|number|no))?[\s.:=：]{0,3}$|[=~^]=?\s?$",
    re.IGNORECASE,
)
"""What stands before four numbers that are no address."""
_VERSION_WINDOW = 24
_NO_SLASH = frozenset("-.")


def _ipv4(match: re.Match[str]) -> tuple[int, int] | None:
    """Four numbers that stand alone, a port or a prefix length behind them aside."""
    text, (start, end) = match.string, match.span()
    alone = checks.apart(text, start, end, _NO_SLASH) and not _names_a_product(text, start)
    if not alone or not checks.ipv4(match.group()):
        return None
    before = text[max(0, start - _VERSION_WINDOW) : start]
    return None if _VERSION.search(before) else (start, end)


def _names_a_product(text: str, start: int) -> bool:
    """``Chrome/120.0.0.0``: a slash with a word before it."""
    return start > 1 and text[start - 1] == "/" and text[start - 2] in checks.WORD


_IPV6 = re.compile(r":[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:.]*+")
_HEX = frozenset("0123456789ABCDEFabcdef")


def _ipv6(match: re.Match[str]) -> tuple[int, int] | None:
    text, start, end = match.string, match.start(), match.end()
    while start > max(0, match.start() - 4) and text[start - 1] in _HEX:
        start -= 1
    while end > start and text[end - 1] == ".":
        end -= 1
    if end - start > 45 or not checks.ipv6(text[start:end]):
        return None
    return (start, end) if checks.apart(text, start, end, _NO_SLASH) else None


RULES = (
    Rule("CN_ID", _CN_ID, _cn_id),
    Rule("CARD", _CARD, _card),
    Rule("IBAN", _IBAN, _iban),
    Rule("IP", _IPV4, _ipv4, hints=(".",)),
    Rule("IP", _IPV6, _ipv6, hints=("::", ":")),
)
