"""Aliases and targets made short."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from adapters.canonical.facts import CAPABILITIES, Facts, Price, Rate
from gateway.settings.snapshot import Alias, Deployment, Provider, Target

PROVIDER = Provider("p", "openai-chat", "http://127.0.0.1:1", None)


def _target(
    model: str,
    *,
    weight: float = 1.0,
    window: int | None = None,
    lacks: tuple[str, ...] = (),
    price: tuple[int, int] | None = None,
) -> Target:
    priced = None if price is None else Price(Rate(price[0]), Rate(price[1]))
    facts = Facts(model, window=window, capabilities=CAPABILITIES - frozenset(lacks), price=priced)
    return Target(Deployment(PROVIDER, model, facts), weight=weight)


def _alias(*targets: Target | str, **settings: Any) -> Alias:
    made = tuple(_target(t) if isinstance(t, str) else t for t in targets)
    return Alias("smart", made, **settings)


@pytest.fixture
def target() -> Callable[..., Target]:
    return _target


@pytest.fixture
def alias() -> Callable[..., Alias]:
    return _alias
