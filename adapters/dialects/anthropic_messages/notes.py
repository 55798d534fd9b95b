"""What an encoder has to tell beside the bytes: dropped, injected, adjusted (promise 12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.canonical.faults import Fault
from adapters.canonical.parts import Dialect
from adapters.wire.anthropic_messages import NAME
from adapters.wire.names import caller_name, lost_names

SHARED_EXTRAS = frozenset({"cache_control"})
"""Extras of parts and tools that are honoured from callers of any dialect: chat clients mark
cache breakpoints with the Messages API's own word."""


class Notes:
    """Collects the notes of one encoding. Fields are named as the caller wrote them."""

    __slots__ = ("adjusted", "dropped", "injected", "messages", "origin", "own")

    def __init__(self, origin: Dialect) -> None:
        self.origin = origin
        self.own = origin == NAME
        self.messages = caller_name(origin, "messages")
        self.dropped: list[str] = []
        self.injected: list[str] = []
        self.adjusted: list[str] = []

    def name(self, field: str) -> str:
        """The caller's name for a canonical field."""
        return caller_name(self.origin, field)

    def drop(self, field: str) -> None:
        """``field`` (canonical name, or a path of the caller's) is not sent on."""
        name = self.name(field)
        if name not in self.dropped:
            self.dropped.append(name)

    def inject(self, name: str, value: object) -> None:
        """The protocol demands ``name`` and the caller gave none."""
        self.injected.append(f"{name}={value}")

    def adjust(self, field: str, before: object, after: object) -> None:
        """``field`` is sent, but not as the caller wrote it."""
        note = f"{self.name(field)}={before}->{after}"
        if note not in self.adjusted:
            self.adjusted.append(note)

    def extras(self, extras: Mapping[str, Any], where: str) -> dict[str, Any]:
        """The extras that may be sent on; the others are named under ``where``."""
        if not extras:
            return {}
        if self.own:
            return dict(extras)
        shared = {
            name: value
            for name, value in extras.items()
            if name in SHARED_EXTRAS and isinstance(value, Mapping)
        }
        lost = {name: value for name, value in extras.items() if name not in shared}
        for name in lost_names(self.origin, lost, where):
            self.drop(name)
        return shared

    def refuse(self, field: str, why: str) -> Fault:
        """A 400 for something that must not be lost and that this protocol can't carry."""
        return Fault("unsupported", why, param=self.name(field))

    def reject(self, field: str, why: str) -> Fault:
        """A 400 for something that no provider could answer."""
        return Fault("bad_request", why, param=self.name(field))
