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
        self.invalid = raw is not None and not isinstance(raw, dict)

    def take(self, *path: str) -> int | None:
        """The count at ``path``, e.g. ``take("input_tokens_details", "cached_tokens")``."""
        value: Any = self._raw
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
            if value is None:
                return None
        number = count(value)
        if number is None:
            self.invalid = True
        return number

    def part(self, whole: int | None, *path: str) -> int | None:
        """The count at ``path``, which is a part of ``whole``: see :meth:`within`."""
        return self.within(whole, self.take(*path))

    def within(self, whole: int | None, number: int | None) -> int | None:
        """``number``, which is a part of ``whole``: clamped to it and marked invalid where the
        provider claims a part larger than the whole."""
        if number is None or whole is None or number <= whole:
            return number
        self.invalid = True
        return whole
