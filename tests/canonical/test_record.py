"""``@record`` compares, hashes and shows as a dataclass of the standard library does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from adapters.canonical.record import record


def classes(make: Callable[..., Any]) -> dict[str, Any]:
    """The same classes, by one decorator or the other."""

    @make(frozen=True, slots=True)
    class Nothing:
        pass

    @make(frozen=True, slots=True)
    class One:
        a: Any

    @make(frozen=True, slots=True)
    class Two:
        a: Any
        b: Any = 0

    @make(frozen=True, slots=True)
    class More(Two):
        c: Any = 0

    @make(frozen=True)
    class Partly:
        a: Any
        b: Any = field(default=0, compare=False)
        c: Any = field(default=0, repr=False)

    @make(slots=True)
    class Loose:
        a: Any

    @make(frozen=True, slots=True, eq=False)
    class Apart:
        a: Any

    @make(frozen=True, slots=True)
    class Own:
        a: Any

        def __repr__(self) -> str:
            return "own"

    found = (Nothing, One, Two, More, Partly, Loose, Apart, Own)
    return {one.__name__: one for one in found}


OURS, THEIRS = classes(record), classes(dataclass)
VALUES: dict[str, list[tuple[Any, ...]]] = {
    "Nothing": [()],
    "One": [(1,), (2,), (None,), ((),), ("x",)],
    "Two": [(1,), (1, 2), (2, 1), ("x", None)],
    "More": [(1,), (1, 0, 1), (1, 2)],
    "Partly": [(1,), (1, 2), (1, 2, 3), (2,)],
    "Loose": [(1,), (2,)],
    "Apart": [(1,), (2,)],
    "Own": [(1,), (2,)],
}


def made(classes: dict[str, Any]) -> list[Any]:
    return [classes[name](*given) for name, rows in VALUES.items() for given in rows]


def test_they_are_equal_to_what_they_would_be_equal_to() -> None:
    def table(classes: dict[str, Any]) -> list[bool]:
        again = made(classes)
        return [one == other for one in made(classes) for other in again]

    assert table(OURS) == table(THEIRS)
    assert all(one == one for one in made(OURS))
    assert OURS["One"](1) != 1


def test_equal_ones_have_one_hash() -> None:
    for one, other in zip(made(OURS), made(OURS), strict=True):
        if one == other and not isinstance(one, OURS["Loose"]):
            assert hash(one) == hash(other)
    assert len({OURS["Two"](1, 2), OURS["Two"](1, 2), OURS["Two"](2, 1)}) == 2


def test_who_may_change_has_no_hash() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(OURS["Loose"](1))


def test_they_are_shown_alike() -> None:
    assert [repr(one) for one in made(OURS)] == [repr(one) for one in made(THEIRS)]


def test_they_can_be_replaced_and_taken_apart() -> None:
    two = OURS["Two"](1, 2)
    assert replace(two, b=3) == OURS["Two"](1, 3)
    assert type(two).__match_args__ == ("a", "b")
    assert not hasattr(two, "__dict__")
