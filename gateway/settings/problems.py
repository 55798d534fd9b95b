"""What is wrong with a configuration, as data that a person can act on.

Every room's ``check(snapshot)`` gives a list of these; the loader raises them all at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from adapters.canonical.record import record


@record(frozen=True, slots=True)
class Problem:
    """One thing to change: ``where`` is the key path as written in the file (``models.smart``),
    ``message`` says what is wrong and what to write instead. ``line`` counts from 1."""

    where: str
    message: str
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        return ": ".join(part for part in (place, self.where, self.message) if part)


class ConfigError(Exception):
    """The configuration can't be used; ``problems`` are all of its faults, in file order."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))
