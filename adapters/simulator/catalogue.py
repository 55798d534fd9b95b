"""What a model's name asks for: the table of words, and how a name is read.

A name is one word or several joined by ``+``: ``reasoning+fault-cut-after-3``. A word that is
not in the table is taken for a real model's name, and means nothing. The names in the table
are the grammar itself: capitals are parameters, brackets are optional.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from adapters.simulator import answers

Kind = Literal["answer", "change", "error", "spoil", "gate", "flag"]
"""``answer`` makes the answer, ``change`` alters it, ``error`` replaces it, ``spoil`` alters
what goes onto the wire, ``gate`` decides whether another fault applies, ``flag`` is a switch."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One word: its grammar, its kind, one line of meaning, and what it does."""

    name: str
    kind: Kind
    meaning: str
    act: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a name, read: its row and its arguments."""

    entry: Entry
    args: Mapping[str, str]


_PARAMETERS = {
    "N": r"\d{1,6}",
    "M": r"\d{1,6}",
    "MS": r"\d{1,6}",
    "KB": r"\d{1,5}",
    "SECONDS": r"\d{1,5}(?:\.\d{1,3})?",
    "STATUS": r"[45]\d\d",
    "TEXT": r".+",
    "FAULT": r".+",
    "WHEN": r".+",
    "DIRT": "|".join(answers.DIRT),
}
_TOKENS = re.compile(r"(\[|\])|\b([A-Z]+)\b|([^\[\]A-Z]+)")


def pattern(name: str) -> re.Pattern[str]:
    """The regular expression of a row's grammar."""
    out = []
    for bracket, parameter, literal in _TOKENS.findall(name):
        if bracket:
            out.append("(?:" if bracket == "[" else ")?")
        elif parameter:
            out.append(f"(?P<{parameter}>{_PARAMETERS[parameter]})")
        else:
            out.append(re.escape(literal))
    return re.compile("".join(out))


def _flag(*_: object) -> None:
    """A switch does nothing by itself: the server looks for it."""


_ANSWERS = (
    Entry("echo", "answer", "repeats the last user text; no tools, no JSON", answers.echo),
    Entry("say-TEXT", "answer", "says TEXT, its dashes as blanks", answers.say),
    Entry("recite", "answer", "repeats the conversation as the provider saw it", answers.recite),
    Entry("sim-tool", "answer", "calls a tool whenever there are some", answers.sim_tool),
    Entry("parallel-N", "answer", "calls N tools in one turn, round the list", answers.parallel),
    Entry("talk-and-call", "answer", "says a sentence, then calls tools", answers.talk_and_call),
    Entry("bad-arguments", "answer", "calls a tool with cut JSON", answers.bad_arguments),
    Entry("unknown-tool", "answer", "calls a tool that nobody offered", answers.unknown_tool),
    Entry("silent", "answer", "ends properly without any content", answers.silent),
    Entry("refusal", "answer", "refuses in the vendor's own form", answers.refusal),
    Entry("paced-N-MS", "answer", "N chunks, one every MS milliseconds", answers.paced),
    Entry("burst-N", "answer", "N chunks as fast as they go", answers.burst),
    Entry("weigh-KB", "answer", "a text of KB kilobytes", answers.weigh),
    Entry("dirty-DIRT", "answer", "asked for JSON, spoils it in the way DIRT", answers.dirty),
    Entry(
        "once-dirty-DIRT",
        "answer",
        "the same in the conversation's first answer only",
        answers.dirty_then_clean,
    ),
    Entry(
        "invalid-then-valid-N",
        "answer",
        "JSON that breaks the schema N times, valid when asked again",
        answers.invalid_then_valid,
    ),
    Entry("always-invalid", "answer", "JSON that never fits the schema", answers.always_invalid),
)
_CHANGES = (
    Entry("reasoning", "change", "thinks before the answer, asked or not", answers.reasoning),
    Entry(
        "sealed-reasoning",
        "change",
        "thinks, but shows only the seal (redacted, encrypted)",
        answers.hidden_reasoning,
    ),
    Entry("slow-MS", "change", "MS milliseconds before each delta", answers.slow_tokens),
)
_FLAGS = (
    Entry("lenient", "flag", "takes requests that a strict provider refuses", _flag),
    Entry("sim", "flag", "means nothing: a name that starts nowhere else", _flag),
)

CATALOGUE: tuple[Entry, ...] = (*_ANSWERS, *_CHANGES, *_FLAGS)
"""Every word, in the order of the documentation."""


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], Entry], ...]:
    return tuple((pattern(entry.name), entry) for entry in CATALOGUE)


def word(text: str) -> Word | None:
    """The row that ``text`` is an instance of; ``None`` for a real model's name."""
    for regex, entry in _patterns():
        found = regex.fullmatch(text)
        if found is not None:
            args = {key: value for key, value in found.groupdict().items() if value is not None}
            return Word(entry, args)
    return None


def words(model: str) -> tuple[Word, ...]:
    """The words of a model's name that the table knows.

    :raises ValueError: for a ``fault-`` word that it does not know, since a misspelt fault
        would be a test that tests nothing.
    """
    found = []
    for text in model.split("+"):
        known = word(text)
        if known is not None:
            found.append(known)
        elif text.startswith("fault-"):
            raise ValueError(f"{text} is not a fault that the simulator knows")
    return tuple(found)
