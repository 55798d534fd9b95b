"""Imports point down the list of rooms, and third-party packages have owners."""

from __future__ import annotations

import sys
from graphlib import CycleError, TopologicalSorter
from typing import Any

LEVELS = (
    ("gateway.__main__",),
    ("gateway.cli",),
    ("gateway.app",),
    ("gateway.http",),
    ("gateway.services",),
    ("gateway.northbound",),
    ("gateway.runs",),
    ("gateway.tools", "gateway.flow"),
    ("gateway.policy", "gateway.routing", "gateway.structured"),
    ("gateway.store",),
    ("gateway.settings",),
    ("gateway.observe",),
    ("adapters.registry",),
    ("adapters.adapter",),
    ("adapters.transport", "adapters.dialects", "adapters.simulator"),
    ("adapters.wire",),
    ("adapters.canonical",),
)
"""From top to bottom; rooms of one level are strangers."""
ROOT_PACKAGES = ("gateway", "adapters")
SHARED_BY_DIALECTS = "adapters.dialects.base"
RUNS_SEEN_BY_NORTHBOUND = ("gateway.runs.spec", "gateway.runs.events")

ANYWHERE: tuple[str, ...] = ("",)
NOWHERE: tuple[str, ...] = ()
OWNERS: dict[str, tuple[str, ...]] = {
    "aiohttp": ("adapters.transport",),
    "aiosqlite": ("gateway.store",),
    "anthropic": NOWHERE,
    "asyncpg": ("gateway.store",),
    "fastapi": ("gateway.http", "gateway.app", "adapters.simulator"),
    "genai_prices": ("gateway.settings.load",),
    "httptools": ("gateway.http",),
    "httpx": ("gateway.tools.http", "gateway.cli"),
    "httpx2": ("gateway.tools.mcp",),
    "jinja2": ("gateway.policy.prompts",),
    "jiter": ("gateway.northbound", "gateway.structured"),
    "jsonschema_rs": ("gateway.structured",),
    "mcp": ("gateway.tools.mcp",),
    "mcp_types": ("gateway.tools.mcp",),
    "openai": NOWHERE,
    "opentelemetry": ("gateway.observe",),
    "orjson": ANYWHERE,
    "prometheus_client": ("gateway.observe",),
    "pydantic": (
        "gateway.settings",
        "gateway.northbound",
        "gateway.runs",
        "gateway.services",
        "gateway.tools",
    ),
    "pydantic_core": (
        "gateway.settings",
        "gateway.northbound",
        "gateway.runs",
        "gateway.tools",
    ),
    "re2": ("gateway.policy.redaction",),
    "sqlite3": ("gateway.store",),
    "sse_starlette": ("gateway.http",),
    "starlette": ("gateway.http", "gateway.app", "adapters.simulator"),
    "typing_extensions": ANYWHERE,
    "uvicorn": ("gateway.app", "gateway.http"),
    "uvloop": ("gateway.cli", "gateway.app"),
    "yarl": ("adapters.transport",),
    "zstandard": ("gateway.http",),
}
"""Who may import a package; the vendors' SDKs are the tests' judges and nobody's else."""


def level(module: str) -> tuple[int, str]:
    """The level and the room of a module of ours."""
    for number, rooms in enumerate(LEVELS):
        for room in rooms:
            if module == room or module.startswith(f"{room}."):
                return number, room
    raise AssertionError(f"{module} is in no room: add it to LEVELS and to docs/architecture.md")


def is_ours(name: str) -> bool:
    return name.partition(".")[0] in ROOT_PACKAGES


def inside(module: str, owners: tuple[str, ...]) -> bool:
    return any(not o or module == o or module.startswith(f"{o}.") for o in owners)


def test_imports_point_down(modules: list[Any]) -> None:
    wrong = []
    for module in modules:
        if module.name in ROOT_PACKAGES:
            wrong += [
                f"{module.place}:{i.line}: imports" for i in module.imports if is_ours(i.name)
            ]
            continue
        own_level, own_room = level(module.name)
        for found in module.imports:
            if not is_ours(found.name) or found.name in ROOT_PACKAGES:
                continue
            other_level, other_room = level(found.name)
            if own_room != other_room and own_level >= other_level:
                wrong.append(f"{module.place}:{found.line}: {own_room} must not know {found.name}")
    assert not wrong, "\n".join(wrong)


def test_dialects_are_strangers_to_each_other(modules: list[Any]) -> None:
    wrong = []
    for module in modules:
        parts = module.name.split(".")
        if parts[:2] != ["adapters", "dialects"] or len(parts) < 3:
            continue
        own = ".".join(parts[:3])
        wrong += [
            f"{module.place}:{found.line}: {own} must not know {found.name}"
            for found in module.imports
            if found.name.startswith("adapters.dialects.")
            and not inside(found.name, (own, SHARED_BY_DIALECTS))
        ]
    assert not wrong, "\n".join(wrong)


def test_northbound_sees_of_runs_only_their_words(modules: list[Any]) -> None:
    wrong = [
        f"{module.place}:{found.line}: {found.name}"
        for module in modules
        if module.name.startswith("gateway.northbound")
        for found in module.imports
        if found.name.startswith("gateway.runs") and not inside(found.name, RUNS_SEEN_BY_NORTHBOUND)
    ]
    assert not wrong, "\n".join(wrong)


def test_packages_are_imported_by_their_owners_only(modules: list[Any]) -> None:
    wrong = []
    for module in modules:
        for found in module.imports:
            package = found.name.partition(".")[0]
            if package in ROOT_PACKAGES:
                continue
            if package in sys.stdlib_module_names and package not in OWNERS:
                continue
            owners = OWNERS.get(package)
            if owners is None:
                wrong.append(f"{module.place}:{found.line}: {package} has no owner in OWNERS")
            elif not inside(module.name, owners):
                allowed = ", ".join(owners) or "tests only"
                wrong.append(f"{module.place}:{found.line}: {package} is for {allowed}")
    assert not wrong, "\n".join(wrong)


def test_no_two_modules_need_each_other(modules: list[Any]) -> None:
    names = {module.name for module in modules}
    graph = {
        module.name: {i.name for i in module.imports if i.name in names and i.name != module.name}
        for module in modules
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(f"a knot: {' -> '.join(error.args[1])}") from None


def test_nothing_is_imported_by_star(modules: list[Any]) -> None:
    wrong = [module.place for module in modules if "import *" in module.text]
    assert not wrong
