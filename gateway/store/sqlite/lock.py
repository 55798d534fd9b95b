"""One process serves a file: a lock beside it says who, and dies with its holder.

``flock`` belongs to the open file, so a crash frees it, and two stores in one process exclude
each other too. The file itself stays: removing it would let two holders lock two files.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from gateway.store.base import StoreError


class FileLock:
    """The right to serve ``database``; take it, and keep it until :meth:`release`."""

    __slots__ = ("_fd", "path")

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(database.name + ".lock")
        self._fd: int | None = None

    def acquire(self) -> None:
        """:raises StoreError: another process holds the lock; the message says which."""
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(fd, 100).decode("ascii", "replace").strip() or "another process"
            os.close(fd)
            raise StoreError(
                f"This database is being served by {holder} (lock file {self.path.name}). "
                "Stop that gateway first, or give this one another [store] url. "
                "Several gateways can share PostgreSQL, not an SQLite file."
            ) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"process {os.getpid()}\n".encode(), 0)
        self._fd = fd

    def release(self) -> None:
        """Give the lock back; harmless if it is not held."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
