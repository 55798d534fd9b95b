"""Threads for tools that block: a bounded number, each for one call, none of which can keep the
process alive.

The standard library's pool joins its threads when the interpreter ends, so one tool that hangs
would hang the shutdown too. Starting a thread takes some 50 microseconds, which no tool notices.
Must not know tools.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

MOST = 16


class Threads:
    """Runs blocking calls, at most ``most`` at once; further ones wait for their turn.

    A call whose caller has gone runs to its end, because a thread can't be stopped; it holds its
    place until then, so that the bound is one of threads and not of callers.
    """

    __slots__ = ("_slots", "running")

    def __init__(self, most: int = MOST) -> None:
        self._slots = asyncio.Semaphore(most)
        self.running = 0

    async def run(self, call: Callable[[], T]) -> T:
        """What ``call`` returns, or raises. Cancelling stops the waiting, not the thread."""
        await self._slots.acquire()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()

        def work() -> None:
            result: Any = None
            error: BaseException | None = None
            try:
                result = context.run(call)
            except BaseException as raised:  # noqa: BLE001 - raised again where it is awaited
                error = raised
            try:
                loop.call_soon_threadsafe(self._finish, done, result, error)
            except RuntimeError:  # the loop was closed while the call hung: nobody waits any more
                return

        thread = threading.Thread(target=work, name="gateway-tool", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system has no more threads
            self._slots.release()
            raise
        self.running += 1
        return await done

    def _finish(self, done: asyncio.Future[T], result: Any, error: BaseException | None) -> None:
        self.running -= 1
        self._slots.release()
        if done.cancelled():
            return
        if error is None:
            done.set_result(result)
        elif isinstance(error, StopIteration):  # which no future may carry
            done.set_exception(RuntimeError("the call raised StopIteration"))
        else:
            done.set_exception(error)
