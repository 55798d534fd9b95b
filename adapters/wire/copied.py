"""Fields whose value on the wire is the canonical one, as it stands."""

from __future__ import annotations

from operator import attrgetter
from typing import Any


class Copied:
    """Wire names and the attributes behind them, read in one step."""

    __slots__ = ("_names", "_read")

    def __init__(self, **attributes: str) -> None:
        self._names = tuple(attributes)
        self._read = attrgetter(*attributes.values())

    def put(self, source: object, body: dict[str, Any]) -> None:
        """Add to ``body`` what is set in ``source``. An empty tuple is unset, too: there it
        stands for a list that nobody gave."""
        values = self._read(source)
        if values.count(None) + values.count(()) == len(values):
            return  # as with most requests
        for name, value in zip(self._names, values, strict=True):
            if value is not None and value != ():
                body[name] = value
