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
    task = work if isinstance(work, asyncio.Future) else asyncio.ensure_future(work)
    ended = asyncio.get_running_loop().create_future()

    def end(done: asyncio.Future[T]) -> None:
        if not ended.done():
            ended.set_result(None)
        elif not done.cancelled():
            done.exception()  # seen here; the cancellation is what the caller hears of

    task.add_done_callback(end)
    try:
        await ended
    except asyncio.CancelledError:
        if not task.done():
            await asyncio.wait([task], timeout=grace)
        if not task.done():
            task.cancel()
        elif not task.cancelled():
            task.exception()  # as above, where both came in one turn of the loop
        raise
    return task.result()
