"""A prompt as a file: ``NAME.md`` or ``NAME@VERSION.md``.

::

    +++
    labels = ["production"]
    variables = { customer = "string" }
    +++
    You help {{ customer }}.

    <!-- user -->
    {{ question }}

Between the ``+++`` lines stands TOML: whatever a definition may hold but its templates, and the
version's labels. Behind them stand the templates, ``<!-- user -->`` between the two. A file
without that line has no user template; one with nothing behind it has a blank one.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from adapters.canonical.record import record
from gateway.policy.prompts.definition import (
    LATEST,
    Prompt,
    PromptRefused,
    check_id,
    prompt_of,
)
from gateway.settings.problems import Problem

SUFFIX = ".md"
_FILE = re.compile(r"(?P<name>[^@]+)(?:@(?P<version>[1-9]\d{0,8}))?")
_FRONT = re.compile(r"\A\ufeff?\+\+\+[ \t]*\r?\n(.*?)^\+\+\+[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.M)
_USER = re.compile(r"^[ \t]*<!--[ \t]*user[ \t]*-->[ \t]*$", re.MULTILINE)
_TEMPLATES = ("system", "user")


@record(frozen=True, slots=True)
class Filed:
    """A prompt of a file, and the labels that its file gives it."""

    prompt: Prompt
    labels: tuple[str, ...]
    file: str


def read_text(name: str, version: int, text: str, file: str) -> Filed:
    """The prompt in the text of a file.

    :raises PromptRefused: for what is wrong with it.
    """
    front = _FRONT.match(text)
    settings = {} if front is None else _settings(front.group(1))
    body = text if front is None else text[front.end() :]
    labels = _labels(settings.pop("labels", []))
    for key in _TEMPLATES:
        if key in settings:
            raise PromptRefused(key, "stands behind the front matter, not in it")
    system, mark, user = _split(body)
    definition: dict[str, Any] = {**settings}
    if system:
        definition["system"] = system
    if mark:
        definition["user"] = user
    return Filed(prompt_of(name, version, definition, "file"), labels, file)


def read_folder(folder: Path) -> tuple[list[Filed], list[Problem]]:
    """Every prompt of a folder, and what is wrong with those that can't be used."""
    found: list[Filed] = []
    problems: list[Problem] = []
    for file in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            found.append(_read_file(file))
        except PromptRefused as refused:
            problems.append(Problem(refused.where, refused.message, str(file)))
        except (OSError, UnicodeDecodeError) as error:
            problems.append(Problem("", f"can't be read as UTF-8 text: {error}", str(file)))
    return found, problems + _contradictions(found)


def _read_file(file: Path) -> Filed:
    named = _FILE.fullmatch(file.name.removesuffix(SUFFIX))
    if named is None:
        raise PromptRefused("", "must be called NAME.md or NAME@VERSION.md, such as support@2.md")
    version = named["version"]
    text = file.read_text(encoding="utf-8")
    return read_text(named["name"], 1 if version is None else int(version), text, str(file))


def _settings(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PromptRefused("", f"the front matter is no valid TOML: {error}") from error


def _labels(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(label, str) for label in given):
        raise PromptRefused("labels", "must be a list of texts")
    for label in given:
        check_label(label, "labels")
    return tuple(given)


def check_label(label: str, where: str) -> None:
    """:raises PromptRefused: for what can be no label: a version's number would be ambiguous."""
    check_id(label, where)
    if label.isdigit() or label == LATEST:
        raise PromptRefused(where, f"{label!r} is taken: numbers and {LATEST!r} mean versions")


def _split(body: str) -> tuple[str, bool, str]:
    """The system template, whether there is a user template, and that one."""
    mark = _USER.search(body)
    if mark is None:
        return body.strip(), False, ""
    return body[: mark.start()].strip(), True, body[mark.end() :].strip()


def _contradictions(found: list[Filed]) -> list[Problem]:
    """Two files for one version, or one label on two versions."""
    problems: list[Problem] = []
    seen: dict[tuple[str, str], str] = {}
    for filed in found:
        name, version = filed.prompt.name, filed.prompt.version
        for what in (f"version {version}", *(f"label {label!r}" for label in filed.labels)):
            first = seen.setdefault((name, what), filed.file)
            if first != filed.file:
                problems.append(Problem("", f"{name} has {what} in {first} already", filed.file))
    return problems
