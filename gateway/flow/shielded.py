"""Work that must be finished although its caller was cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

GRACE = 5.0
"""Seconds that shielded work may go on after a cancellation."""


async def shielded(work: Coroutine[Any, Any, T] | asyncio.Future[T], grace: float = GRACE) -> T:
    """Run ``work`` to its end even if the caller is cancelled meanwhile, but no longer than
    ``grace`` seconds after that; then raise the cancellation (fault kind K19).

    :raises asyncio.CancelledError: after the work is done or given up, if one came.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            await asyncio.wait([task], timeout=grace)
        if not task.done():
            task.cancel()
        elif not task.cancelled():
            task.exception()  # seen here; the cancellation is what the caller hears of
        raise
