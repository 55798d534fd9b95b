"""``@record``: the dataclass of this house, cheap to make and cheap to define.

To the type checker it *is* :func:`dataclasses.dataclass`, so an assignment to a field of a frozen
record is an error of ``make check``. At run time it differs in two points:

- It leaves ``frozen`` out, because a frozen class fills each field through ``object.__setattr__``:
  with some thirty records a call that was 5 to 10 % of its CPU (``python -m benchmarks --only
  call``).
- Comparing, hashing and showing are done by a few functions for all instead of by code that is
  compiled for each class: three hundred classes, so a fifth of the time of a start was that.

Records compare and hash by their fields.
"""

from __future__ import annotations

import dataclasses
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:

    def record(*, frozen: bool = False, eq: bool = True, **options: Any) -> Any:
        """Make a dataclass of a class, frozen for the type checker only."""

        def make(cls: type) -> type:
            made = dataclasses.dataclass(cls, repr=False, eq=False, **options)
            if "__repr__" not in made.__dict__:
                made.__repr__ = _shown
            if eq and "__eq__" not in made.__dict__:
                _compare(made, hashed=frozen)
            return made

        return make

    def _shown(self: Any) -> str:
        shown = (f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def _compare(made: type, *, hashed: bool) -> None:
        """Let instances be equal where their class and what counts of their fields are."""
        names = [field.name for field in dataclasses.fields(made) if field.compare]
        values = attrgetter(*names) if names else type

        def __eq__(self: Any, other: Any) -> Any:
            if other.__class__ is not self.__class__:
                return NotImplemented
            return values(self) == values(other)

        def __hash__(self: Any) -> int:
            return hash(values(self))

        made.__eq__ = __eq__
        made.__hash__ = __hash__ if hashed else None


__all__ = ["record"]
