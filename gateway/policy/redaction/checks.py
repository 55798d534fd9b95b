"""Whether a run of characters is what it looks like: checksums, lengths, surroundings.

Pure arithmetic over short strings; each takes what its pattern has found.
"""

from __future__ import annotations

import socket

WORD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
"""ASCII only: a number that stands right behind a Chinese character stands alone."""
JOINTS = frozenset("-./")
"""What ties a number to its neighbour where both sides are words: ``ORD-4111``, ``1.2.3.4``."""


def apart(text: str, start: int, end: int, joints: frozenset[str] = JOINTS) -> bool:
    """Whether ``text[start:end]`` stands alone: no letter or digit touches it, nor one of
    ``joints`` with a letter or digit behind it."""
    return not (_tied(text, start - 1, -1, joints) or _tied(text, end, 1, joints))


def _tied(text: str, place: int, step: int, joints: frozenset[str]) -> bool:
    if not 0 <= place < len(text):
        return False
    if text[place] in WORD:
        return True
    beyond = place + step
    return text[place] in joints and 0 <= beyond < len(text) and text[beyond] in WORD


_DOUBLED = str.maketrans("0123456789", "0246813579")
"""Each digit twice, the digits of the result added up."""


def luhn(digits: str) -> bool:
    """The check digit of payment cards (ISO/IEC 7812-1)."""
    weighed = digits[-1::-2] + digits[-2::-2].translate(_DOUBLED)
    return (sum(weighed.encode()) - len(weighed) * ord("0")) % 10 == 0


BRANDS: tuple[tuple[str, str, frozenset[int]], ...] = (
    ("2200", "2204", frozenset({16, 17, 18, 19})),  # Mir
    ("2221", "2720", frozenset({16})),  # Mastercard
    ("300", "305", frozenset({14})),  # Diners Club
    ("34", "34", frozenset({15})),  # American Express
    ("3528", "3589", frozenset({16})),  # JCB
    ("36", "36", frozenset({14, 16})),  # Diners Club
    ("37", "37", frozenset({15})),  # American Express
    ("38", "39", frozenset({14, 16})),  # Diners Club
    ("4", "4", frozenset({13, 16, 19})),  # Visa
    ("50", "50", frozenset({16, 18, 19})),  # Maestro, Elo, RuPay
    ("51", "55", frozenset({16})),  # Mastercard
    ("56", "58", frozenset({16, 18, 19})),  # Maestro
    ("60", "60", frozenset({16, 19})),  # Discover, RuPay, Maestro
    ("62", "62", frozenset({16, 17, 18, 19})),  # UnionPay
    ("63", "63", frozenset({16, 18, 19})),  # Maestro, Elo
    ("644", "65", frozenset({16, 19})),  # Discover, RuPay
    ("67", "67", frozenset({16, 18, 19})),  # Maestro
    ("81", "82", frozenset({16})),  # RuPay, UnionPay
)
"""First digits of card numbers, from and to, and the lengths that each brand gives out."""


def card(digits: str) -> bool:
    """Whether the check digit is right, and a brand gives out such a number."""
    if not luhn(digits):
        return False
    for first, last, lengths in BRANDS:
        if first <= digits[: len(first)] and digits[: len(last)] <= last:
            return len(digits) in lengths
    return False


_IBAN_LENGTHS = """
    AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18
    DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23
    IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27
    MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19
    SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30
"""
IBAN_LENGTHS: dict[str, int] = {row[:2]: int(row[2:]) for row in _IBAN_LENGTHS.split()}
"""The length of each country's numbers (the SWIFT registry of ISO 13616)."""


def iban(number: str) -> bool:
    """Whether ``number`` (capitals and digits) has its country's length and remainder 1 of 97."""
    if len(number) != IBAN_LENGTHS.get(number[:2]):
        return False
    turned = number[4:] + number[:4]
    return int("".join(str(int(letter, 36)) for letter in turned)) % 97 == 1


_CN_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_CN_CHECK = "10X98765432"
_PROVINCES = """
    11 12 13 14 15 21 22 23 31 32 33 34 35 36 37 41 42 43 44 45 46 50 51 52 53 54 61 62 63 64 65 71
    81 82 83 91
"""
_CN_PROVINCES = frozenset(_PROVINCES.split())
"""The first two digits: where the number was given out (GB/T 2260)."""


def cn_id(number: str) -> bool:
    """The check character of a Chinese resident number (GB 11643, ISO 7064 MOD 11-2)."""
    if number[:2] not in _CN_PROVINCES:
        return False
    total = sum(int(digit) * w for digit, w in zip(number[:17], _CN_WEIGHTS, strict=True))
    return _CN_CHECK[total % 11] == number[17].upper()


def ipv4(text: str) -> bool:
    """Four numbers up to 255, none with a leading zero."""
    return all(int(part) < 256 and (part == "0" or part[0] != "0") for part in text.split("."))


def ipv6(text: str) -> bool:
    """An address in any of its spellings, but not ``::`` alone, which is no address of anyone."""
    if not any(letter.isdigit() for letter in text):
        return False
    try:
        socket.inet_pton(socket.AF_INET6, text)
    except OSError:
        return False
    return True
