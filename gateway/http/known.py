"""Heads that come again: one client's calls differ in their bodies, and in little else.

The line and the headers of its calls are the same bytes but for the number in ``content-length``.
So what has come twice, not counting a connection's first call, is parsed no more: it is known by
its digest, with what was found out of it. What is kept holds no credentials, so that a key that was
taken away is nowhere. Must not know what is served.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from hashlib import sha256
from secrets import token_bytes
from typing import Any

App = Callable[..., Awaitable[None]]

LONGEST = 1_900
"""Bytes of a head that is known again. Of longer data :mod:`hashlib` lets other threads run
meanwhile; getting the turn back takes longer than to parse."""

MOST = 256
"""Heads that a server knows."""

MOST_SEEN = 2_000
"""Heads of which it knows that they have come."""

CREDENTIALS = frozenset({b"authorization", b"x-api-key", b"proxy-authorization", b"cookie"})

_ITS_OWN = CREDENTIALS | {b"content-length"}
"""Headers that are not kept."""

_ONE_REQUESTS = frozenset({"server", "client", "state", "extensions"})
"""What another request's scope has of its own."""

_LENGTH, _SMALL = b"\r\nContent-Length: ", b"\r\ncontent-length: "
_SALT = token_bytes(32)


def decoded(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers as text."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}


Whole = tuple[bytes, bytes]
"""A request that came in one piece: the digest of its head without its length, and its body."""


def whole(data: bytes) -> Whole | None:
    """``data`` cut in two, if it looks like one request with a length. Nothing is parsed, so that
    only tells which request it is if it is one."""
    end = data.find(b"\r\n\r\n", 0, LONGEST) + 4
    line = max(data.find(_LENGTH, 0, end), data.find(_SMALL, 0, end))
    first = line + len(_LENGTH)
    last = data.find(b"\r", first)
    if line < 0 or data[first:last] != b"%d" % (len(data) - end):
        return None
    head = b"%b%b\0%b" % (_SALT, data[:first], data[last:end])
    return sha256(head).digest(), data[end:]


class Found(dict[Callable[[Mapping[str, str]], Any], Any]):
    """What readers make of some headers, by who made it: it is made once."""

    __slots__ = ("headers",)

    def __init__(self, headers: Mapping[str, str]) -> None:
        super().__init__()
        self.headers = headers

    def __missing__(self, make: Callable[[Mapping[str, str]], Any]) -> Any:
        made = self[make] = make(self.headers)
        return made


class Known:
    """A head: its part of the ASGI scope, its headers as text, and what was found of them.

    ``door`` is the ASGI application that serves every request with this head, once that is known.

    :param scope: of a request with this head.
    """

    __slots__ = ("digest", "door", "found", "headers", "scope")

    def __init__(self, digest: bytes, scope: Mapping[str, Any]) -> None:
        self.digest = digest
        self.scope = {name: scope[name] for name in scope if name not in _ONE_REQUESTS}
        self.headers = decoded(scope["headers"])
        self.door: App | None = None
        self.found = Found(self.headers)

    def again(self, server: Any, client: Any, state: Mapping[str, Any]) -> Any:
        """The scope of another request, on another connection maybe."""
        return {**self.scope, "server": server, "client": client, "state": {**state}}


class KnownHeads:
    """The heads that one server knows, the oldest first. ``find`` gives the one with a digest."""

    __slots__ = ("_known", "_seen", "find")

    def __init__(self) -> None:
        self._known: dict[bytes, Known] = {}
        self._seen: set[bytes] = set()
        self.find = self._known.get

    def seen(self, digest: bytes) -> bool:
        """Whether a head has come before. Many never come again, because they hold a trace's id:
        to keep those would cost more than to parse them."""
        if digest in self._seen:
            return True
        if len(self._seen) >= MOST_SEEN:
            self._seen.clear()
        self._seen.add(digest)
        return False

    def keep(self, known: Known, door: App) -> None:
        """Know it from now on, by what was found of it until now."""
        headers = [header for header in known.scope["headers"] if header[0] not in _ITS_OWN]
        known.scope["headers"] = headers
        known.headers = known.found.headers = decoded(headers)
        known.door = door
        while len(self._known) >= MOST:
            del self._known[next(iter(self._known))]
        self._known[known.digest] = known
