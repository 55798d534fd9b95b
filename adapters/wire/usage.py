"""Reading a provider's token counts, which are numbers from a stranger.

Negative, fractional, textual and absurd counts are refused one by one, so that no total ever
moves backwards (fault kind K13). Must not know any vendor's field names: the dialects do.
"""

from __future__ import annotations

from typing import Any

MAX_TOKENS = 100_000_000
"""More than any model's window by an order of magnitude: a larger count is an error of theirs."""


def count(value: object) -> int | None:
    """``value`` where it is a whole number of tokens from 0 to :data:`MAX_TOKENS`, else ``None``.

    A float is refused even if it is whole, and so is ``True``: no provider counts in either.
    """
    return value if type(value) is int and 0 <= value <= MAX_TOKENS else None


class Counts:
    """Reads counts out of one usage object and remembers whether any was refused.

    ``None`` from :meth:`take` is "the provider did not say"; ``invalid`` tells it apart from
    "the provider said nonsense".
    """

    __slots__ = ("_raw", "invalid")

    def __init__(self, raw: object) -> None:
        self._raw: dict[str, Any] = raw if isinstance(raw, dict) else {}
        self.invalid = raw is not None and raw is not self._raw

    def take(self, name: str) -> int | None:
        """The count ``name`` of the usage object itself."""
        value: int | None = self._raw.get(name)  # or whatever a stranger sends: see `count`
        if value is None or (type(value) is int and 0 <= value <= MAX_TOKENS):
            return value
        self.invalid = True
        return None

    def detail(self, name: str, place: str) -> int | None:
        """The count ``name`` in the object that stands at ``place``."""
        details = self._raw.get(place)
        if not isinstance(details, dict):
            return None
        number = count(details.get(name))
        self.invalid = self.invalid or number != details.get(name)
        return number

    def part(self, whole: int | None, name: str, place: str) -> int | None:
        """The :meth:`detail` that is a part of ``whole``: see :meth:`within`."""
        return self.within(whole, self.detail(name, place)) if place in self._raw else None

    def within(self, whole: int | None, number: int | None) -> int | None:
        """``number``, which is a part of ``whole``: clamped to it and marked invalid where the
        provider claims a part larger than the whole."""
        if number is None or whole is None or number <= whole:
            return number
        self.invalid = True
        return whole
