"""The verdict on one answer: what it says, what was mended, what is wrong with it.

Parse, mend, take out the nulls that were asked for, validate: in this order, and nothing else.
Pure. Must not know streams, providers or what follows a bad verdict.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import orjson

from adapters.canonical.record import record
from adapters.wire.json import loads
from adapters.wire.strict_schema import Path
from gateway.structured.check import Checker
from gateway.structured.lenient import Change
from gateway.structured.mend import Unparsable, mend
from gateway.structured.nulls import without_nulls
from gateway.structured.words import Violation

MAX_RAW = 16_000
"""Characters of a bad answer that are told to its caller."""

Kind = Literal["output_unparsable", "output_invalid", "output_truncated"]


@record(frozen=True, slots=True)
class Verdict:
    """``text`` is the answer as the caller may have it. ``kind`` is ``None`` for a good one,
    else the fault's; ``violations`` says what is wrong. ``where`` is the id of the tool call that
    is meant, if it is not the answer's text. ``choice`` is the answer's number."""

    text: str
    changes: tuple[Change, ...] = ()
    kind: Kind | None = None
    violations: tuple[Violation, ...] = ()
    where: str | None = None
    choice: int = 0

    @property
    def ok(self) -> bool:
        """Whether the answer is proven."""
        return self.kind is None

    def data(self) -> dict[str, Any]:
        """What the error body shows of a bad answer."""
        return {
            "raw": self.text[:MAX_RAW],
            "errors": [violation.object() for violation in self.violations],
        }


@record(frozen=True, slots=True)
class Wanted:
    """What an answer has to be. Without a ``checker``: any JSON object.

    ``optional`` are the properties whose null means "left out" (:mod:`.nulls`).
    """

    checker: Checker | None
    optional: tuple[Path, ...] = ()


def judge(text: str, wanted: Wanted, *, ended: bool = True) -> Verdict:
    """The verdict on ``text``.

    :param ended: the model stopped by itself; see :func:`gateway.structured.mend.mend`.
    """
    try:
        mended = mend(text, ended=ended)
    except Unparsable as error:
        wrong = Violation("", _begin(text), f"one JSON value and nothing else ({error})")
        return Verdict(text, (), "output_unparsable", (wrong,))
    value = loads(mended.text)
    checker = wanted.checker
    if checker is None:
        return _object(text, mended.text, mended.changes, value)
    if not checker.affordable(mended.text):
        wrong = Violation("", "a very large answer", "one that this schema can be checked against")
        return Verdict(text, (), "output_invalid", (wrong,))
    if checker.fits(value):
        return Verdict(mended.text, mended.changes)
    if wanted.optional and "null" in mended.text:
        cut, changes = without_nulls(mended.text, wanted.optional)
        value = loads(cut)
        if checker.fits(value):
            return Verdict(cut, (*mended.changes, *changes))
    return Verdict(text, (), "output_invalid", tuple(checker.violations(value)))


def _object(text: str, mended: str, changes: tuple[Change, ...], value: Any) -> Verdict:
    if isinstance(value, Mapping):
        return Verdict(mended, changes)
    wrong = Violation("", _begin(text), "a JSON object")
    return Verdict(text, (), "output_invalid", (wrong,))


def _begin(text: str) -> str:
    if not text.strip():
        return "nothing"
    return orjson.dumps(text[:80]).decode() + ("…" if len(text) > 80 else "")
