"""How large a limit may be. The books keep 64 bits: beyond these, a key or a run could be written
that nobody can read again. What has no limit leaves it out. And what a key may be called."""

from __future__ import annotations

from decimal import Decimal

MOST_COUNT = 10**15
"""Calls, tokens, whatever is counted."""
MOST_USD = 10**9
"""Dollars; they are kept in nano-dollars."""
LEAST_USD = Decimal("1e-9")
"""Dollars: one nano-dollar. Less is nothing in the books, where nothing is a limit of its own."""
MOST_MEGABYTES = 10**6
"""Of a body: far beyond any memory, and still a number of bytes."""
LONGEST = 100 * 365 * 86_400
"""Seconds."""
LONGEST_NAME = 100
"""Characters."""


def fit_usd(usd: Decimal) -> Decimal:
    """``usd``, if the books can keep that much.

    :raises ValueError: says what an amount must be.
    """
    if not 0 <= usd <= MOST_USD or 0 < usd < LEAST_USD:
        raise ValueError(f"must be 0, or from {LEAST_USD:f} to {MOST_USD} US dollars")
    return usd


def fit_name(text: str) -> str:
    """``text``, if a key or a project may be called so: people read it in lists, type it to
    revoke it, and every database keeps it.

    :raises ValueError: says what a name must be.
    """
    if not 0 < len(text) <= LONGEST_NAME or not text.isprintable() or text != text.strip():
        raise ValueError(
            f"must have 1 to {LONGEST_NAME} printable characters, and no blank at either end"
        )
    return text
