"""Prompts made, listed and labelled at run time; those of files are read-only here.

A version is never changed and never deleted: what the ledger names stays what it was. Which one
is used is moved by a label. Must not know HTTP.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from adapters.canonical.faults import Fault
from adapters.canonical.parts import NO_EXTRAS
from adapters.canonical.request import PromptRef, Request
from gateway.flow.context import Runtime
from gateway.flow.prompting import found, named
from gateway.northbound.base import Asked
from gateway.policy.prompts.book import Book, Shelf
from gateway.policy.prompts.definition import (
    FIELDS,
    ID,
    Definition,
    Prompt,
    PromptRefused,
    prompt_of,
)
from gateway.policy.prompts.frontmatter import check_label
from gateway.policy.prompts.settings import filed
from gateway.services.state import State
from gateway.settings.problems import Problem
from gateway.settings.snapshot import Alias, Snapshot
from gateway.store.prompts import PromptLabel, PromptRow
from gateway.structured.bounds import SchemaRefused
from gateway.structured.check import Schemas

log = logging.getLogger("gateway.prompts")

TRIES = 10
"""How often a version's number is drawn anew where others make versions at the same time."""

Name = Annotated[str, Field(pattern=rf"^{ID.pattern}$")]


class PromptRequest(BaseModel):
    """The body of ``POST /admin/prompts``: a name, labels for the new version, and its content."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    labels: list[str] = []
    description: str | None = None
    system: str | None = None
    user: str | None = None
    model: str | None = None
    variables: dict[str, Any] | None = None
    examples: list[Any] | None = None
    output: dict[str, Any] | None = None
    fenced: list[str] | None = None

    def definition(self) -> dict[str, Any]:
        """What was said of the content; ``null`` says nothing."""
        said = {name: getattr(self, name) for name in FIELDS}
        return {name: value for name, value in said.items() if value is not None}


class LabelRequest(BaseModel):
    """The body of ``PUT /admin/prompts/NAME/labels/LABEL``."""

    model_config = ConfigDict(extra="forbid")

    version: int = Field(strict=True, ge=1, le=999_999_999)


# ------------------------------------------------------------------ making and moving


async def create_prompt(state: State, wanted: PromptRequest) -> dict[str, Any]:
    """Make the next version of a prompt, and let its labels mean it.

    :raises Fault: ``bad_request`` for what is no prompt, ``conflict`` for a name of a file.
    """
    _writable(state, wanted.name)
    for number, label in enumerate(wanted.labels):
        _checked_label(label, f"labels[{number}]")
    prompt = _proved(state.runtime, wanted.name, wanted.definition())
    prompt = await _add(state, prompt)
    for label in wanted.labels:
        await state.store.set_prompt_label(PromptLabel(prompt.name, label, prompt.version))
    await refresh_prompts(state)
    return _version(prompt) | {"name": prompt.name, "labels": wanted.labels}


async def _add(state: State, prompt: Prompt) -> Prompt:
    """Write ``prompt`` under the next number that is free."""
    for _ in range(TRIES):
        known = [row.version for row in await state.store.prompts() if row.name == prompt.name]
        at = state.runtime.clock.wall()
        new = replace(prompt, version=max(known, default=0) + 1, at=at)
        row = PromptRow(new.name, new.version, new.hash, at, new.definition)
        if await state.store.add_prompt(row):
            return new
    raise Fault("conflict", "Others make versions of this prompt just now. Try again.")


async def set_label(state: State, name: str, label: str, version: int) -> dict[str, Any]:
    """Let a label mean a version.

    :raises Fault: ``not_found`` where there is no such version, ``conflict`` for a file's.
    """
    _writable(state, name)
    _checked_label(label, "label")
    if not await state.store.set_prompt_label(PromptLabel(name, label, version)):
        raise Fault("not_found", "There is no such version of this prompt.", param="version")
    await refresh_prompts(state)
    return {"name": name, "label": label, "version": version}


async def drop_label(state: State, name: str, label: str) -> dict[str, Any]:
    """Delete a label; the version that it meant stays.

    :raises Fault: ``not_found`` where there is none, ``conflict`` for a file's.
    """
    _writable(state, name)
    if not await state.store.drop_prompt_label(name, label):
        raise Fault("not_found", "This prompt has no such label.", param="label")
    await refresh_prompts(state)
    return {"name": name, "label": label, "deleted": True}


def _writable(state: State, name: str) -> None:
    if state.runtime.prompts.from_file(name):
        raise Fault(
            "conflict",
            "This prompt is a file of the configuration. Change it there and reload, or choose "
            "another name.",
            param="name",
        )


def _checked_label(label: str, param: str) -> None:
    try:
        check_label(label, param)
    except PromptRefused as refused:
        raise Fault("bad_request", str(refused), param=param) from refused


def _proved(runtime: Runtime, name: str, definition: Definition) -> Prompt:
    """A prompt whose templates, model and schema can be used."""
    try:
        prompt = prompt_of(name, 1, definition)
    except PromptRefused as refused:
        raise Fault("bad_request", str(refused), param=refused.where or None) from refused
    if prompt.model is not None and prompt.model not in runtime.snapshot.aliases:
        raise Fault("bad_request", "There is no model of this name here.", param="model")
    why = _schema_fault(prompt, runtime.schemas)
    if why is not None:
        raise Fault("bad_request", f"The schema can't be used: {why}", param="output.schema")
    return prompt


def _schema_fault(prompt: Prompt, schemas: Schemas) -> str | None:
    if prompt.output is None:
        return None
    try:
        schemas.checker(prompt.output.schema)
    except SchemaRefused as refused:
        return str(refused)
    return None


# ------------------------------------------------------------------ showing


def list_prompts(state: State) -> list[dict[str, Any]]:
    """Every prompt with its versions and labels, without their texts."""
    return [_shelf(name, shelf) for name, shelf in state.runtime.prompts]


def show_prompt(state: State, reference: str) -> dict[str, Any]:
    """All versions behind a name, or the one behind ``name@version``, with its content.

    :raises Fault: ``bad_request`` or ``not_found``.
    """
    prompt = state.runtime.prompts.find(reference, None)
    shelf = state.runtime.prompts.shelf(prompt.name)
    assert shelf is not None  # it has just been found on it
    if "@" not in reference:
        return _shelf(prompt.name, shelf)
    labels = [label for label, number in shelf.labels.items() if number == prompt.version]
    told = {"name": prompt.name, "source": prompt.source, "labels": labels}
    return {**told, **_version(prompt), **prompt.definition}


def _shelf(name: str, shelf: Shelf) -> dict[str, Any]:
    versions = [shelf.versions[number] for number in sorted(shelf.versions)]
    return {
        "name": name,
        "source": versions[-1].source,
        "latest": shelf.latest,
        "labels": dict(sorted(shelf.labels.items())),
        "versions": [_version(prompt) for prompt in versions],
    }


def _version(prompt: Prompt) -> dict[str, Any]:
    return {
        "id": prompt.reference,
        "version": prompt.version,
        "hash": prompt.hash,
        "created_at": prompt.at,
    }


# ------------------------------------------------------------------ keeping up


async def refresh_prompts(state: State) -> None:
    """Take the store's prompts as they are now; those that are known already are not read again."""
    book = state.runtime.prompts
    rows, labels = await state.store.prompts(), await state.store.prompt_labels()
    found = [prompt for row in rows if (prompt := _kept(row, book)) is not None]
    book.use_stored(found, labels)


def _kept(row: PromptRow, book: Book) -> Prompt | None:
    """A stored prompt; ``None`` for one that this version of the gateway does not take."""
    known = book.stored(row.name, row.version)
    if known is not None and known.hash == row.hash:
        return known
    try:
        return replace(prompt_of(row.name, row.version, row.definition), at=row.at)
    except PromptRefused as refused:
        log.error("the stored prompt %s@%s can't be used: %s", row.name, row.version, refused)
        return None


def check(snapshot: Snapshot) -> list[Problem]:
    """Output schemas of prompt files that no answer could be held against."""
    schemas = Schemas()
    faults = [(one, _schema_fault(one.prompt, schemas)) for one in filed(snapshot)]
    return [Problem("output.schema", why, one.file) for one, why in faults if why is not None]


def with_output(runtime: Runtime, alias: Alias, asked: Asked) -> Asked:
    """``asked`` with its prompt's output schema, where it names none: whether an answer has to be
    held back is known before it is asked for.

    :raises Fault: ``bad_request`` or ``not_found`` for a prompt that is none.
    """
    request = asked.request
    prompt = found(runtime, alias, request) if request.output is None else None
    if prompt is None or prompt.output is None:
        return asked
    return replace(asked, request=replace(pinned(request, prompt), output=prompt.output))


def with_model(runtime: Runtime, asked: Asked) -> Asked:
    """``asked`` with its prompt's model, where it names none.

    :raises Fault: ``bad_request`` where the prompt has none either.
    """
    request = asked.request
    if request.model:
        return asked
    prompt = None
    if request.prompt is not None:
        prompt = named(runtime, request.prompt, request.origin)
    if prompt is None or prompt.model is None:
        raise Fault(
            "bad_request",
            "model: say which model is to answer. The prompt names none.",
            param="model",
        )
    return replace(asked, request=replace(pinned(request, prompt), model=prompt.model))


def pinned(request: Request, prompt: Prompt) -> Request:
    """``request`` for this version of its prompt, of which it has something already: a label may
    move before the rest of it is used."""
    variables = NO_EXTRAS if request.prompt is None else request.prompt.variables
    return replace(request, prompt=PromptRef(prompt.name, str(prompt.version), variables))
