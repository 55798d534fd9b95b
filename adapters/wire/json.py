"""JSON on the wire: orjson, with the two things it gets wrong put right.

``orjson`` is fast and strict UTF-8, but turns integers beyond 64 bits into floats. Bodies of
callers are parsed by :mod:`gateway.northbound`, which keeps them; what goes to a provider is
written by :func:`dumps`, which falls back to the standard library for such an integer.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

import orjson


def dumps(value: Any) -> bytes:
    """Compact UTF-8 JSON; mapping proxies and huge integers included."""
    try:
        return orjson.dumps(value, default=_default)
    except TypeError:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_default)
        return text.encode()


def dumps_kept(value: Any) -> bytes:
    """As :func:`dumps`, for what is held on to. orjson leaves its result in the buffer that it
    was written in: 8 kB for a body of 1 kB, 900 kB for one of 100 kB (orjson 3.13)."""
    return bytes(memoryview(dumps(value)))


def loads(data: bytes | str) -> Any:
    """Parse JSON; integers beyond 64 bits become floats, and those beyond floats stay exact: what
    :func:`dumps` wrote can be read.

    :raises ValueError: where the text is no JSON, or the bytes no UTF-8.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        text = data if isinstance(data, str) else data.decode()
        if _BEYOND_FLOATS.search(text) is None:
            raise
        orjson.loads(_BEYOND_FLOATS.sub("0", text))  # all else is as strict as ever
        return _read_exactly(text, _finite)


def loads_exact(data: bytes) -> Any:
    """Parse as strictly, integers of any size kept.

    :raises ValueError: where the bytes are no JSON or no UTF-8.
    """
    found = loads(data)
    return _read_exactly(data) if _LONG in data.translate(_ONES) else found


_ONES = bytes.maketrans(b"0123456789", b"1" * 10)
_LONG = b"1" * 19
"""A long integer once every digit is a 1: found ten times as fast as by an expression."""
_BEYOND_FLOATS = re.compile(r"\d{309,}")


def _read_exactly(text: bytes | str, parse_float: Callable[[str], float] = float) -> Any:
    try:
        return json.loads(text, parse_float=parse_float)
    except RecursionError:
        raise ValueError("The JSON is nested too deeply.") from None


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is no number of JSON, or beyond all that are read")
    return number


def _default(value: Any) -> Any:
    if hasattr(value, "keys"):
        return dict(value)
    raise TypeError(f"no JSON for {type(value).__name__}")
