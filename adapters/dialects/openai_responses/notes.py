"""What translating one request changed, gathered while it is encoded (promise 12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.canonical.parts import Dialect
from adapters.wire.names import caller_name, lost_names
from adapters.wire.openai_responses import DIALECT


class Notes:
    """Collects names as the caller of ``origin`` wrote them, each once, in order.

    ``native``: the caller speaks this very protocol, so its own extras may go along.
    """

    __slots__ = ("_dropped", "adjusted", "injected", "native", "origin")

    def __init__(self, origin: Dialect) -> None:
        self.origin = origin
        self.native = origin == DIALECT
        self._dropped: dict[str, None] = {}
        self.injected: list[str] = []
        self.adjusted: list[str] = []

    @property
    def dropped(self) -> tuple[str, ...]:
        """The names of everything left out."""
        return tuple(self._dropped)

    def drop(self, name: str) -> None:
        """Something was left out; ``name`` as the caller wrote it."""
        self._dropped[name] = None

    def drop_field(self, field: str) -> None:
        """A request field was left out; ``field`` is its canonical name."""
        self.drop(caller_name(self.origin, field))

    def extras(self, extras: Mapping[str, Any], where: str) -> dict[str, Any]:
        """The ``extras`` that may go along: all of them to their own protocol, else none, and
        each is named under ``where``."""
        if self.native:
            return dict(extras)
        for name in lost_names(self.origin, extras, where):
            self.drop(name)
        return {}
