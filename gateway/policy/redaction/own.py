"""The operator's own patterns, run by RE2: linear in the text whatever the pattern.

RE2 has no back-references and no look-around, so it refuses them by itself. Finding *all* matches
is linear only if each look ahead is bounded, so a repetition without an end (``*``, ``+``,
``{2,}``) is refused too, with what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import re2  # type: ignore[import-untyped]

from adapters.canonical.record import record
from gateway.policy.redaction.rule import Span

LONGEST = 100
"""The most that one repetition may repeat."""
_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_TOKEN = re.compile(
    r"\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\\.|\[:[^:]*:\]|[^\]\\])*\]|(?P<endless>[*+]|\{\d+,\})"
    r"|\{(?:\d+,)?(?P<most>\d+)\}",
    re.DOTALL,
)
"""What of a pattern's text may look like a repetition, and what is one."""


class PatternRefused(ValueError):
    """The pattern can't be used; the message says why and what to write instead."""


@record(frozen=True, slots=True)
class OwnRule:
    """A pattern that needs no proof. Searched in one go: RE2 reads UTF-8, and would write the
    text anew for each search."""

    kind: str
    pattern: Any
    across: bool = False
    by_words: bool = False

    def spans(self, text: str) -> Iterator[Span]:
        """Every match, in order."""
        for match in self.pattern.finditer(text):
            start, end = match.span()
            yield Span(start, end, self.kind)


def own_rule(kind: str, pattern: str) -> OwnRule:
    """A rule of the operator's.

    :raises PatternRefused: for what is no pattern, or none that is linear.
    """
    for token in _TOKEN.finditer(pattern):
        if token.group("endless") is not None:
            raise PatternRefused(
                f"repeats without an end ({token.group()}); name the most that can occur, "
                f"such as {{1,{LONGEST}}}"
            )
        if token.group("most") is not None and int(token.group("most")) > LONGEST:
            raise PatternRefused(f"repeats {token.group()}; the most is {LONGEST}")
    try:
        compiled = re2.compile(pattern, _OPTIONS)
    except re2.error as error:
        raise PatternRefused(f"is no linear-time regular expression: {_reason(error)}") from error
    if compiled.search("") is not None:
        raise PatternRefused("matches the empty text; it must always match at least one character")
    return OwnRule(kind, compiled)


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else ""
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
