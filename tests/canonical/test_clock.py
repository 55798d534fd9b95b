"""Ids: no two alike, and in the order of their time where it matters."""

from __future__ import annotations

import re

import pytest

from adapters.canonical.clock import SystemClock

SHAPE = re.compile(r"req_[0-9a-f]{24}")
MANY = 2_000


def test_ids_are_of_one_shape_and_never_the_same() -> None:
    clocks = SystemClock(), SystemClock()
    made = [clock.new_id("req_") for _ in range(MANY) for clock in clocks]
    assert all(SHAPE.fullmatch(one) for one in made)
    assert len(set(made)) == len(made)


def test_what_is_made_later_sorts_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SystemClock, "wall", staticmethod(lambda: 1_700_000_000.0))
    earlier = {SystemClock().new_id("") for _ in range(9)}
    monkeypatch.setattr(SystemClock, "wall", staticmethod(lambda: 1_700_000_000.01))
    later = {SystemClock().new_id("") for _ in range(9)}
    assert max(earlier) < min(later)


def test_one_clock_counts_on_even_where_its_time_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SystemClock, "wall", staticmethod(lambda: 1_700_000_000.0))
    clock = SystemClock()
    made = [clock.new_id("") for _ in range(MANY)]
    assert made == sorted(made)
