"""What a function says of itself in its docstring: a description, and a word on each parameter.

Reads the two ways that most Python code uses: ``:param name: text`` and an ``Args:`` section.
Must not know tools.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import field

from adapters.canonical.record import record

_FIELD = re.compile(r":(?P<kind>\w+)(?:[^:\n]*?\b(?P<name>\w+))?:\s*(?P<text>.*)")
_ITEM = re.compile(r"(?P<name>\w+)(?:\s*\([^)]*\))?:\s*(?P<text>.*)")
_SECTION = re.compile(
    r"(?P<title>Args|Arguments|Parameters|Returns|Yields|Raises|Examples?|Notes?):"
)
_OF_PARAMETERS = frozenset({"Args", "Arguments", "Parameters"})


@record(slots=True)
class Doc:
    """``description`` is all that stands before the first section or field."""

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


def read(text: str | None) -> Doc:
    """Take a docstring apart; what is not understood stays in the description."""
    lines = inspect.cleandoc(text or "").splitlines()
    start = next((n for n, line in enumerate(lines) if _opens(line)), len(lines))
    doc = Doc(_joined(lines[:start]))
    listing, name, indent = False, "", ""
    for line in lines[start:]:
        opened = _opens(line)
        if opened is not None:
            listing = opened.groupdict().get("title") in _OF_PARAMETERS
            name = opened["name"] if opened.groupdict().get("kind") == "param" else ""
            indent = ""
            _add(doc, name, opened.groupdict().get("text") or "")
            continue
        indent = indent or line[: len(line) - len(line.lstrip())]
        item = _ITEM.fullmatch(line.removeprefix(indent)) if listing else None
        name = name if item is None else item["name"]
        _add(doc, name, line.strip() if item is None else item["text"])
    return doc


def _opens(line: str) -> re.Match[str] | None:
    """A field or a section that begins on ``line``."""
    return _FIELD.fullmatch(line) or _SECTION.fullmatch(line.rstrip())


def _joined(lines: list[str]) -> str:
    """Lines joined within a paragraph, paragraphs kept apart."""
    paragraphs = re.split(r"\n\s*\n", "\n".join(lines).strip())
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _add(doc: Doc, name: str, text: str) -> None:
    if name:
        doc.parameters[name] = f"{doc.parameters.get(name, '')} {text}".strip()
