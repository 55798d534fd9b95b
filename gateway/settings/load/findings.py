"""Collects what is wrong while the file is read, and says where it stands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field

from adapters.canonical.record import record
from gateway.settings.load.positions import Path
from gateway.settings.problems import ConfigError, Problem

_BARE = re.compile(r"[A-Za-z0-9_-]+")


@record(slots=True)
class Findings:
    """The faults of one file. ``lines`` are its keys' places."""

    file: str
    lines: Mapping[Path, int] = field(default_factory=dict)
    found: dict[Path, str] = field(default_factory=dict)

    def add(self, path: Path, message: str) -> None:
        """Note a fault, unless ``path`` or a part of it was found faulty before: then this
        one is only its shadow."""
        if not any(
            path[: len(known)] == known or known[: len(path)] == path for known in self.found
        ):
            self.found[path] = message

    def problems(self) -> list[Problem]:
        """All of them, in the order of the file."""
        problems = [
            Problem(written(path), message, self.file, self._line(path))
            for path, message in self.found.items()
        ]
        return sorted(problems, key=lambda problem: problem.line or 0)

    def raise_if_any(self) -> None:
        """:raises ConfigError: with everything found, if anything was."""
        if self.found:
            raise ConfigError(self.problems())

    def _line(self, path: Path) -> int | None:
        """The line of ``path``, or of the nearest thing around it that the file has."""
        for length in range(len(path), 0, -1):
            line = self.lines.get(path[:length])
            if line is not None:
                return line
        return None


def written(path: Path) -> str:
    """A key path as one would write it: ``models."gpt-4.1".targets[0].model``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            name = step if _BARE.fullmatch(step) else f'"{step}"'
            text += f".{name}" if text else name
    return text
