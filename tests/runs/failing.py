"""Books that fail for a moment: before they do what they are asked, or after it, when only the word
of it is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from adapters.canonical.faults import Fault
from tests.harness import Harness


def failing(
    g: Harness,
    patch: pytest.MonkeyPatch,
    name: str,
    meant: Callable[..., bool] = lambda *asked: True,
    *,
    written: bool = False,
) -> list[Any]:
    """The store's method ``name`` fails once, at the next call that is ``meant``; with ``written``
    only when it has done something. What it was asked then is in the answer."""
    work, failed = getattr(g.state.store, name), list[Any]()

    async def call(*asked: Any, **more: Any) -> Any:
        if failed or not meant(*asked):
            return await work(*asked, **more)
        done = await work(*asked, **more) if written else None
        if done == []:
            return done
        failed.append(asked)
        raise Fault("store_unavailable", "not now")

    patch.setattr(g.state.store, name, call)
    return failed


def writing(type: str, run_id: str | None = None) -> Callable[..., bool]:
    """Whether an event of this type is to be written, to this run."""

    def meant(addition: Any) -> bool:
        found = any(event.type == type for event in addition.events)
        return found and run_id in (None, addition.run_id)

    return meant
