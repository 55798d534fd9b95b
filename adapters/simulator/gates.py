"""When a fault applies; rows of the catalogue. Each gate looks at the calls of one model."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

Args = Mapping[str, str]


def once(args: Args, call: int, age: float) -> bool:
    """The first call only."""
    return call == 0


def first_n(args: Args, call: int, age: float) -> bool:
    """The first N calls."""
    return call < int(args["N"])


def flap(args: Args, call: int, age: float) -> bool:
    """N calls fail, then M work, and so on; M is N unless it is given."""
    failing = int(args["N"])
    working = int(args.get("M", failing))
    return call % max(failing + working, 1) < failing


def every(args: Args, call: int, age: float) -> bool:
    """Each N-th call."""
    return (call + 1) % max(int(args["N"]), 1) == 0


def chance(args: Args, call: int, age: float) -> bool:
    """N in a hundred, spread as if by chance and always the same."""
    return hashlib.sha256(str(call).encode()).digest()[0] * 100 < int(args["N"]) * 256


def for_a_while(args: Args, call: int, age: float) -> bool:
    """In the first SECONDS after the first call."""
    return age < float(args["SECONDS"])
