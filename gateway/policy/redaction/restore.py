"""Originals put back into text that arrives in pieces, wherever a placeholder is cut.

Of what has come, everything is let go but the longest end that may still become a placeholder;
that is never longer than the longest placeholder. Nothing is looked at twice, and what has been
put back is never looked at again. Must not know events.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gateway.policy.redaction.json_text import escaped

_PLAIN = re.compile(r"<([A-Z][A-Z0-9_]*+)>")
_PLAIN_OPEN = re.compile(r"<[A-Z0-9_]*+\Z")
_JSON = re.compile(r"(?:<|\\u003[cC])([A-Z][A-Z0-9_]*+)(?:>|\\u003[eE])")
_HALF_ESCAPE = r"\\(?:u(?:0(?:0(?:3)?)?)?)?"
_JSON_OPEN = re.compile(rf"(?:(?:<|\\u003[cC])[A-Z0-9_]*+(?:{_HALF_ESCAPE})?|{_HALF_ESCAPE})\Z")
_ESCAPES = 10
"""Characters by which a placeholder grows when both of its brackets are written as ``\\u003c``."""


class Restorer:
    """Puts the values of one call back.

    :param originals: placeholder to value, as :class:`Masking` keeps them.
    """

    __slots__ = ("_json", "_longest", "_plain")

    def __init__(self, originals: Mapping[str, str]) -> None:
        self._plain = {name[1:-1]: value for name, value in originals.items()}
        self._json = {name: escaped(value) for name, value in self._plain.items()}
        self._longest = max(map(len, originals), default=0) + _ESCAPES

    def whole(self, text: str) -> str:
        """``text``, which is all there is, with every value put back."""
        return _PLAIN.sub(lambda match: self._plain.get(match.group(1), match.group()), text)

    def tree(self, value: Any) -> Any:
        """Parsed JSON with the values put back into its strings."""
        if isinstance(value, str):
            return self.whole(value)
        if isinstance(value, Mapping):
            return {key: self.tree(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.tree(item) for item in value]
        return value

    def split(self, text: str, *, json: bool) -> tuple[str, str]:
        """``text`` as far as it is decided, with the values put back, and the end that is not.

        :param json: the text is JSON source: values are escaped as its strings need it, and
            brackets may come escaped.
        """
        pattern, open_end = (_JSON, _JSON_OPEN) if json else (_PLAIN, _PLAIN_OPEN)
        tail = open_end.search(text, max(0, len(text) - self._longest))
        cut = len(text) if tail is None else tail.start()
        return self._put_back(pattern, text[:cut], json=json), text[cut:]

    def rest(self, text: str, *, json: bool) -> str:
        """The undecided end, of which nothing more will come."""
        return self._put_back(_JSON if json else _PLAIN, text, json=json)

    def _put_back(self, pattern: re.Pattern[str], text: str, *, json: bool) -> str:
        values = self._json if json else self._plain
        return pattern.sub(lambda match: values.get(match.group(1), match.group()), text)
