"""The source tree, parsed once: what the architecture tests look at."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("gateway", "adapters")


@dataclass(frozen=True)
class Import:
    """One imported module, and the line that imports it."""

    name: str
    line: int


class Module:
    """One Python file of the product."""

    def __init__(self, path: Path, known: frozenset[str]) -> None:
        self.path = path
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)
        self.name = module_name(path)
        self._known = known

    @property
    def place(self) -> str:
        return str(self.path.relative_to(ROOT))

    @cached_property
    def imports(self) -> list[Import]:
        """Every import wherever it stands: at the top, in a function, for types only, or by a
        call of ``import_module`` with a constant."""
        return list(self._imports())

    def _imports(self) -> Iterator[Import]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield Import(alias.name, node.lineno)
            elif isinstance(node, ast.ImportFrom):
                yield from self._from(node)
            elif isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__"):
                for argument in node.args[:1]:
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                        yield Import(argument.value, node.lineno)

    def _from(self, node: ast.ImportFrom) -> Iterator[Import]:
        base = node.module or ""
        if node.level:
            package = self.name.split(".")
            package = package if self.path.name == "__init__.py" else package[:-1]
            kept = package[: len(package) - node.level + 1]
            base = ".".join([*kept, *([base] if base else [])])
        for alias in node.names:
            inner = f"{base}.{alias.name}"
            yield Import(inner if inner in self._known else base, node.lineno)

    @cached_property
    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        return [node for node in ast.walk(self.tree) if isinstance(node, kinds)]


def _called(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.fixture(scope="session")
def modules() -> list[Module]:
    """All modules of the product."""
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    known = frozenset(map(module_name, paths))
    return [Module(path, known) for path in paths]


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the project."""
    return ROOT


@pytest.fixture(scope="session")
def texts(root: Path) -> list[Path]:
    """Every text file that belongs to the project, tests and documentation included."""
    made = {
        ".venv",
        ".venv-clients",
        ".venv-peers",
        ".git",
        "node_modules",
        "build",
        "dist",
        "__pycache__",
        ".hypothesis",
    }
    kinds = {".py", ".md", ".toml", ".txt", ".sql", ".sh", ".json", ".yml", ".js", ""}
    return [
        path
        for path in sorted(root.rglob("*"))
        if path.is_file()
        and path.suffix in kinds
        and not any(part in made or part.endswith("_cache") for part in path.parts)
    ]
