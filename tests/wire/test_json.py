"""JSON as it is read: orjson's strictness, and integers of any size."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.wire.json import dumps, loads, loads_exact

BEYOND = 7 * 10**400


@pytest.mark.parametrize("value", [BEYOND, -BEYOND, {"a": [BEYOND, "7" * 400]}], ids=type)
def test_what_was_written_can_be_read(value: object) -> None:
    assert loads(dumps(value)) == value
    assert loads(dumps(value).decode()) == value
    assert loads_exact(dumps(value)) == value


@given(st.integers(-(10**20), 10**20) | st.integers(-(10**19), -(2**63)), st.text(max_size=9))
def test_integers_around_64_bits_stay_exact(number: int, text: str) -> None:
    assert loads_exact(dumps([text, number])) == [text, number]


def is_json(data: bytes | str) -> bool:
    try:
        loads(data)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    "text", ["[%d, NaN]", "[%d, Infinity]", "[%d, 1e999]", "[%d, -1e999]", "[%d", '["%d]', "%d]"]
)
def test_a_long_integer_makes_nothing_else_valid(text: str) -> None:
    assert not is_json(text % BEYOND)
    assert not is_json((text % BEYOND).encode())


def test_nor_bytes_that_are_no_text() -> None:
    assert not is_json(b'[%d, "\xff"]' % BEYOND)
    assert is_json(b'[%d, "\xc3\xa9"]' % BEYOND)


@pytest.mark.parametrize("depth", [1_000, 1_020, 1_100, 100_000])
@pytest.mark.parametrize("number", [1, 10**20, BEYOND], ids=["short", "long", "beyond"])
@pytest.mark.parametrize("read", [loads, loads_exact])
def test_what_is_too_deep_is_no_json_whatever_it_holds(
    read: Callable[[bytes], object], depth: int, number: int
) -> None:
    """Never another error than that, which nobody would take for the caller's mistake."""
    with contextlib.suppress(ValueError):
        assert read(b"[" * depth + b"%d" % number + b"]" * depth)


def test_nor_halves_of_characters() -> None:
    assert not is_json(b'[%d, "\\ud800"]' % BEYOND)
    assert is_json(b'[%d, "\\ud83d\\ude00"]' % BEYOND)
