"""Reading a model's name: the words in it, and which of its faults apply to this call."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Mapping
from functools import cache

from adapters.canonical.record import record
from adapters.simulator.answers import DIRT
from adapters.simulator.catalogue import CATALOGUE, Entry, Kind
from adapters.simulator.troubles import unknown_fault

_PARAMETERS = {
    "N": r"\d{1,6}",
    "M": r"\d{1,6}",
    "MS": r"\d{1,6}",
    "KB": r"\d{1,5}",
    "MB": r"\d{1,4}",
    "SECONDS": r"\d{1,5}(?:\.\d{1,3})?",
    "STATUS": r"[45]\d\d",
    "TEXT": r".+",
    "FAULT": r".+",
    "DIRT": "|".join(DIRT),
}
_TOKENS = re.compile(r"([\[\]])|([A-Z]+)|([^\[\]A-Z]+)")


@record(frozen=True, slots=True)
class Word:
    """A word of a name: its row of the catalogue and its arguments."""

    entry: Entry
    args: Mapping[str, str]


@record(slots=True)
class _Calls:
    """How often a model was called, and when first."""

    first: float
    count: int = 0


class Names:
    """Reads names and counts calls by name, the oldest forgotten beyond ``keep``."""

    def __init__(self, keep: int = 10_000) -> None:
        self._keep = keep
        self._calls: OrderedDict[str, _Calls] = OrderedDict()

    def read(self, name: str) -> Mapping[Kind, tuple[Word, ...]]:
        """The words of ``name`` that apply to this call, by kind; counts the call.

        :raises Refused: 404 for a fault that the catalogue does not have.
        """
        calls = self._calls.setdefault(name, _Calls(time.monotonic()))
        number, age = calls.count, time.monotonic() - calls.first
        calls.count += 1
        while len(self._calls) > self._keep:
            self._calls.popitem(last=False)
        applying: dict[Kind, tuple[Word, ...]] = {}
        for word in _words(name):
            if word.entry.kind == "gate":
                if not word.entry.act(word.args, number, age):
                    continue
                word = _gated(word.args.get("FAULT", "503"))
            applying[word.entry.kind] = (*applying.get(word.entry.kind, ()), word)
        return applying


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], Entry], ...]:
    return tuple((_pattern(entry.name), entry) for entry in CATALOGUE)


def _pattern(grammar: str) -> re.Pattern[str]:
    out = []
    for bracket, parameter, literal in _TOKENS.findall(grammar):
        if bracket:
            out.append("(?:" if bracket == "[" else ")?")
        elif parameter:
            out.append(f"(?P<{parameter}>{_PARAMETERS[parameter]})")
        else:
            out.append(re.escape(literal))
    return re.compile("".join(out))


def _word(text: str) -> Word | None:
    for regex, entry in _patterns():
        found = regex.fullmatch(text)
        if found is not None:
            args = {key: value for key, value in found.groupdict().items() if value is not None}
            return Word(entry, args)
    return None


def _words(name: str) -> tuple[Word, ...]:
    """The known words of a name; what is not known is a real model's name."""
    found = []
    for text in name.split("+"):
        word = _word(text)
        if word is None and text.startswith("fault-"):
            raise unknown_fault(text)
        if word is not None:
            if word.entry.kind == "gate":
                _gated(word.args.get("FAULT", "503"))
            found.append(word)
    return tuple(found)


def _gated(text: str) -> Word:
    """The fault behind a gate: ``503`` for short, ``cut-after-2``, or any other word."""
    status = f"fault-status-{text}" if re.match(r"[45]\d\d(?:-|$)", text) else f"fault-{text}"
    for candidate in (status, text):
        word = _word(candidate)
        if word is not None and word.entry.kind != "gate":
            return word
    raise unknown_fault(f"fault-{text}")
