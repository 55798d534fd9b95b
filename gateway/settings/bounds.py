"""How large a limit may be. The books keep 64 bits: beyond these, a key or a run could be written
that nobody can read again. What has no limit leaves it out."""

from __future__ import annotations

MOST_COUNT = 10**15
"""Calls, tokens, whatever is counted."""
MOST_USD = 10**9
"""Dollars; they are kept in nano-dollars."""
LONGEST = 100 * 365 * 86_400
"""Seconds."""
