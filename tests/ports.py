"""Ports of the loopback for servers that a test starts by number, or starts again."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator


@contextlib.contextmanager
def reserved_port() -> Iterator[int]:
    """A port that the system gives to nobody else meanwhile, the tests beside this one included.

    Nothing answers there until a server takes it, which must set ``SO_REUSEADDR``; all do.
    """
    with socket.socket() as keeper:
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeper.bind(("127.0.0.1", 0))
        yield keeper.getsockname()[1]
