"""``@record``: a frozen dataclass for what is made anew with every call or every chunk.

To the type checker it *is* :func:`dataclasses.dataclass`, so an assignment to a field of a frozen
record is an error of ``make check``. At run time it leaves ``frozen`` out, because a frozen class
fills each field through ``object.__setattr__``: with some thirty records a call that was 5 to 10 %
of its CPU (``python -m benchmarks --only call``). Records compare and hash by their fields.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:

    def record(*, frozen: bool = False, **options: Any) -> Any:
        """Make a dataclass of a class, frozen for the type checker only."""
        hashed = frozen and options.get("eq", True)
        return dataclasses.dataclass(**options, unsafe_hash=hashed)


__all__ = ["record"]
