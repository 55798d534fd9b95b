"""The ``[prompts]`` table as the policy room uses it: the folder's prompts, the caps."""

from __future__ import annotations

from pathlib import Path

from adapters.canonical.faults import Fault
from gateway.policy.prompts.book import Book
from gateway.policy.prompts.frontmatter import Filed, read_folder
from gateway.policy.prompts.rendering import Limits
from gateway.policy.prompts.variables import required
from gateway.settings.problems import Problem
from gateway.settings.snapshot import Snapshot


def limits(snapshot: Snapshot) -> Limits:
    """What one rendering may cost."""
    table = snapshot.extra.get("prompts", {})
    return Limits(table.get("max_bytes", 1_000_000), table.get("max_seconds", 2.0))


def filed(snapshot: Snapshot) -> list[Filed]:
    """The prompts of the configured folder; those that can't be used are told by :func:`check`."""
    return _read(snapshot)[0]


def check(snapshot: Snapshot) -> list[Problem]:
    """Every template proved, before the port opens; and what models and prompts ask of each
    other. A model's prompt may also be one of the store's, which is looked up when it is used."""
    found, problems = _read(snapshot)
    for one in found:
        model = one.prompt.model
        if model is not None and model not in snapshot.aliases:
            problems.append(Problem("model", f"{model!r} is no model of [models]", one.file))
    book = Book()
    book.use_files(found)
    for name, alias in snapshot.aliases.items():
        why = None if alias.prompt is None else _unusable(alias.prompt, book)
        if why is not None:
            problems.append(Problem(f"models.{name}.prompt", why))
    return problems


def _unusable(reference: str, book: Book) -> str | None:
    """Why no call of a model can have this prompt; ``None`` where one can, or nobody knows yet."""
    if not book.from_file(reference.partition("@")[0]):
        return None
    try:
        prompt = book.find(reference, None)
    except Fault as fault:
        return fault.message
    needed = required(prompt.variables)
    if not needed:
        return None
    return (
        f"the prompt needs the variable {needed[0]!r}, which calls that name no prompt can't send"
    )


def _read(snapshot: Snapshot) -> tuple[list[Filed], list[Problem]]:
    folder = snapshot.extra.get("prompts", {}).get("dir")
    return ([], []) if folder is None else read_folder(Path(snapshot.base_dir) / folder)
