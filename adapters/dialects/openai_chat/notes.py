"""What translating one request changed, gathered while it is encoded (promise 12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.canonical.faults import Fault
from adapters.canonical.parts import Dialect
from adapters.wire.names import CHAT, caller_name, lost_names


class Notes:
    """Collects names as the caller of ``origin`` wrote them, each once, in order.

    ``native``: the caller speaks this very protocol, so its own extras may go along.
    """

    __slots__ = ("_dropped", "adjusted", "injected", "native", "origin")

    def __init__(self, origin: Dialect) -> None:
        self.origin = origin
        self.native = origin == CHAT
        self._dropped: dict[str, None] = {}
        self.injected: list[str] = []
        self.adjusted: list[str] = []

    @property
    def dropped(self) -> tuple[str, ...]:
        """The names of everything left out."""
        return tuple(self._dropped)

    def drop(self, path: str) -> None:
        """Something was left out; ``path`` as the caller wrote it."""
        self._dropped[path] = None

    def drop_field(self, field: str) -> None:
        """A request field was left out; ``field`` is its canonical name."""
        self.drop(caller_name(self.origin, field))

    def adjust(self, field: str, before: object, after: object) -> None:
        """A request field was sent with another value."""
        self.adjusted.append(f"{caller_name(self.origin, field)}={before}->{after}")

    def extras(self, extras: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """The ``extras`` that may go along: all of them to their own protocol, else none, and
        each is named under ``where``."""
        if self.native or not extras:
            return extras
        self.lose(extras, where)
        return {}

    def lose(self, extras: Mapping[str, Any], where: str) -> None:
        """Name ``extras`` that have no place where the object at ``where`` goes."""
        for name in lost_names(self.origin, extras, where):
            self.drop(name)


def unsupported(why: str, path: str) -> Fault:
    """The refusal of what can't be carried and must not be lost."""
    return Fault("unsupported", why, param=path)
