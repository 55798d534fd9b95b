"""Every prompt there is: an index by name, version and label.

Prompts come from files, which belong to the configuration, and from the store, which other
replicas write too. A name belongs to one of the two: files win. Names are looked up here and
nowhere else, and never become a path (case X07).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from difflib import get_close_matches

from adapters.canonical.faults import Fault
from adapters.canonical.record import record
from gateway.policy.prompts.definition import ID, LATEST, Prompt
from gateway.policy.prompts.frontmatter import Filed

DEFAULT = "production"
"""The label that a reference without a version means, where a prompt has it; else the latest."""


@record(slots=True)
class Shelf:
    """All versions of one prompt, and which of them the labels mean."""

    versions: dict[int, Prompt] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)

    @property
    def latest(self) -> int:
        """The highest version."""
        return max(self.versions)

    def find(self, version: str | None) -> Prompt | None:
        """The prompt of a version's number or label; without one, the default's."""
        if version is None:
            return self.versions[self.labels.get(DEFAULT, self.latest)]
        if version.isascii() and version.isdigit():
            return self.versions.get(int(version)) if len(version) < 10 else None
        number = self.latest if version == LATEST else self.labels.get(version)
        return None if number is None else self.versions.get(number)


class Book:
    """The index. Filled anew whole, so a look-up sees the old or the new, never a mixture."""

    __slots__ = ("_file", "_stored")

    def __init__(self) -> None:
        self._file: Mapping[str, Shelf] = {}
        self._stored: Mapping[str, Shelf] = {}

    def use_files(self, found: Iterable[Filed]) -> None:
        """Take the prompts of a configuration."""
        shelves: dict[str, Shelf] = {}
        for filed in found:
            shelf = shelves.setdefault(filed.prompt.name, Shelf())
            shelf.versions[filed.prompt.version] = filed.prompt
            shelf.labels.update(dict.fromkeys(filed.labels, filed.prompt.version))
        self._file = shelves

    def use_stored(self, prompts: Iterable[Prompt], labels: Iterable[tuple[str, str, int]]) -> None:
        """Take the prompts of the store, and its labels as (name, label, version)."""
        shelves: dict[str, Shelf] = {}
        for prompt in prompts:
            shelves.setdefault(prompt.name, Shelf()).versions[prompt.version] = prompt
        for name, label, version in labels:
            if name in shelves and version in shelves[name].versions:
                shelves[name].labels[label] = version
        self._stored = shelves

    def stored(self, name: str, version: int) -> Prompt | None:
        """A version of the store as it was last taken; it never changes."""
        shelf = self._stored.get(name)
        return None if shelf is None else shelf.versions.get(version)

    def shelf(self, name: str) -> Shelf | None:
        """All versions of ``name``."""
        return self._file.get(name) or self._stored.get(name)

    def from_file(self, name: str) -> bool:
        """Whether ``name`` is a file's, and so can't be changed through the API."""
        return name in self._file

    def __iter__(self) -> Iterator[tuple[str, Shelf]]:
        yield from sorted({**self._stored, **self._file}.items())

    def find(self, name: str, version: str | None, param: str = "prompt.id") -> Prompt:
        """The prompt that a reference means. ``name`` may itself be ``name@version``.

        :raises Fault: ``bad_request`` for what can be no name; ``not_found`` for what is none.
        """
        name, at, inside = name.partition("@")
        wanted = inside if at else version
        if at and version not in (None, inside):
            raise Fault("bad_request", "The prompt is given with two versions.", param=param)
        for text in (name, wanted):
            if text is not None and not ID.fullmatch(text):
                raise Fault(
                    "bad_request",
                    "A prompt is named by letters, digits, '.', '_' and '-', and may have a "
                    "version or label behind an @: support@3, support@production.",
                    param=param,
                )
        shelf = self.shelf(name)
        if shelf is None:
            near = get_close_matches(name, [known for known, _ in self], n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise Fault("not_found", f"There is no prompt of this name here.{hint}", param=param)
        prompt = shelf.find(wanted)
        if prompt is None:
            known = ", ".join([*map(str, sorted(shelf.versions)), *sorted(shelf.labels), LATEST])
            raise Fault(
                "not_found",
                f"The prompt {name} has no such version or label. It has: {known[:300]}.",
                param=param,
            )
        return prompt
