"""Telephone numbers: the hardest kind, since a national number is nothing but digits.

Forms that are written like nothing else are taken as they stand. Bare digits are taken only
where the words before them say that they are a telephone number; and none is where they say that
it is an order, a version, an account.
"""

from __future__ import annotations

import re

from gateway.policy.redaction import checks
from gateway.policy.redaction.rule import Proof, Rule, words

_WINDOW = 28
"""Characters before a number that may say what it is."""
_PHONE_WORDS = words(
    "phone phones telephone mobile cell cellphone tel fax hotline landline call called calling "
    "calls dial dialed ring rang text texted sms whatsapp viber wechat reach reached contact "
    "contacts telefon handy mobil portable fixe téléphone teléfono móvil telefono cellulare"
)
_PHONE_SIGNS = (
    "电话",
    "手机",
    "座机",
    "热线",
    "联系",
    "致电",
    "拨打",
    "来电",
    "传真",
    "号码",
    "短信",
    "電話",
    "☎",
    "📞",
    "📱",
)
_OTHER_WORDS = words(
    "order orders invoice ticket case ref reference sku isbn issn imei serial tracking parcel "
    "shipment account acct sn id uid pid po build version timestamp ts epoch batch code item part "
    "model patent postcode zip number no nr num"
)
_OTHER_SIGNS = (
    *("订单", "订单号", "单号", "编号", "流水", "流水号", "运单", "序列号", "工号", "学号"),
    *("批次", "批次号", "版本", "版本号", "账号", "发票", "合同号", "货号", "时间戳", "验证码"),
    *("邮编", "金额", "#", "№", "$", "€", "£", "¥", "￥"),
)
_NUMBER_OF_A_PHONE = frozenset({"no", "nr", "num", "number"})
"""Words of which the one before decides: ``order no.``, ``phone no.``"""
_LETTERS = re.compile(r"[^\W\d_]+")
_DATE = re.compile(
    r"(?:[0-3]?\d([./-])[0-1]?\d\1(?:19|20)\d\d|(?:19|20)\d\d([./-])[0-1]?\d\2[0-3]?\d)(?!\d)"
)
_DIGITS = re.compile(r"\d+")
_GAP = r"[ .\-\u2010-\u2015\u00a0/]"
"""One character between groups of digits."""


def _proof(least: int, most: int, *, named: bool = False) -> Proof:
    """The longest run of the candidate's groups that has ``least`` to ``most`` digits, stands
    alone, and is neither a date nor said to be another kind of number. ``named``: only where a
    word before it says that it is a telephone number."""

    def proof(match: re.Match[str]) -> tuple[int, int] | None:
        end = _end(match, least, most)
        if end is None or _DATE.match(match.string, match.start()):
            return None
        before = _Before(match.string, match.start())
        if before.name_another() or (named and not before.name_a_phone()):
            return None
        return match.start(), end

    return proof


def _end(match: re.Match[str], least: int, most: int) -> int | None:
    """Where the longest run of whole groups of the wanted length ends."""
    text, found, digits = match.string, None, 0
    if match.end() - match.start() < least:
        return None
    for group in _DIGITS.finditer(text, *match.span()):
        digits += group.end() - group.start()
        if digits > most:
            break
        if digits >= least and checks.apart(text, match.start(), group.end()):
            found = group.end()
    return found


class _Before:
    """What the words right before a number say of it."""

    __slots__ = ("_text", "_words")

    def __init__(self, text: str, start: int) -> None:
        self._text = text[max(0, start - _WINDOW) : start]
        self._words = [word.lower() for word in _LETTERS.findall(self._text)]

    def name_another(self) -> bool:
        """Whether the last word names something else that has a number."""
        near = self._text[-8:].rstrip(" \t:：.-_=\"'")
        if near.endswith(_OTHER_SIGNS):
            return True
        if not self._words or not near.lower().endswith(self._words[-1]):
            return False
        last = self._words[-1]
        if last in _NUMBER_OF_A_PHONE:
            return not self.name_a_phone()
        return last in _OTHER_WORDS

    def name_a_phone(self) -> bool:
        """Whether any word in reach speaks of telephoning."""
        return not _PHONE_WORDS.isdisjoint(self._words) or any(
            sign in self._text for sign in _PHONE_SIGNS
        )


def _international(match: re.Match[str]) -> tuple[int, int] | None:
    """``+`` and a country: the plus itself says what it is."""
    end = _end(match, 8, 15)
    return None if end is None else (match.start(), end)


_INTERNATIONAL = re.compile(rf"\+[ (]?[1-9]\d*+(?:(?:{_GAP}|[()]){{1,4}}+\d++){{0,8}}+", re.ASCII)
_DOUBLE_ZERO = re.compile(rf"00{_GAP}?[1-9]\d*+(?:{_GAP}{{1,2}}\(?\d++\)?){{1,6}}+", re.ASCII)
_BRACKETS = re.compile(rf"\(0?[1-9]\d{{0,4}}+\)(?:{_GAP}{{0,2}}\d++){{1,4}}+", re.ASCII)
_LONG_DISTANCE = re.compile(rf"1{_GAP}\(?[2-9]\d\d\)?{_GAP}\d{{3}}{_GAP}\d{{4}}", re.ASCII)
_THREE_THREE_FOUR = re.compile(
    rf"[1-9]\d\d(?:({_GAP})\d{{3}}\1\d{{4}}|-\d{{4}}-\d{{3}})(?!\d)", re.ASCII
)
_CHINESE_MOBILE = re.compile(rf"1[3-9]\d(?:\d{{8}}|({_GAP})\d{{4}}\1\d{{4}})(?!\d)", re.ASCII)
_TRUNK = re.compile(rf"0[1-9]\d*+(?:{_GAP}{{1,2}}\d{{2,8}}+){{1,5}}+", re.ASCII)
_BARE = re.compile(rf"[0-9]\d*+(?:{_GAP}\d{{2,8}}+){{0,4}}+", re.ASCII)

RULES = (
    Rule("PHONE", _INTERNATIONAL, _international, hints=("+",)),
    Rule("PHONE", _DOUBLE_ZERO, _proof(9, 17), hints=("00",)),
    Rule("PHONE", _BRACKETS, _proof(8, 12), hints=("(",)),
    Rule("PHONE", _LONG_DISTANCE, _proof(11, 11), hints=("1",)),
    Rule("PHONE", _THREE_THREE_FOUR, _proof(10, 10)),
    Rule("PHONE", _CHINESE_MOBILE, _proof(11, 11), hints=("1",)),
    Rule("PHONE", _TRUNK, _proof(9, 12), hints=("0",)),
    Rule("PHONE", _BARE, _proof(7, 13, named=True), by_words=True),
)
"""From the plainest form to the barest: country code, area in brackets, North America,
China, a trunk zero with gaps, and digits that only their words explain."""
