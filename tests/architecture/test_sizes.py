"""Modules and functions that fit in a head; names that say something."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

MODULE_LINES = 400
FUNCTION_LINES = 50
NAMES_THAT_SAY_NOTHING = {"utils", "util", "helpers", "helper", "common", "misc", "shared", "core"}


def test_modules_fit(modules: list[Any]) -> None:
    sizes = {module.place: len(module.text.splitlines()) for module in modules}
    wrong = {place: lines for place, lines in sizes.items() if lines > MODULE_LINES}
    assert not wrong


def test_functions_fit(modules: list[Any]) -> None:
    wrong = [
        f"{module.place}:{node.lineno}: {node.name} has {node.end_lineno - node.lineno + 1} lines"
        for module in modules
        for node in module.functions
        if node.end_lineno - node.lineno + 1 > FUNCTION_LINES
    ]
    assert not wrong, "\n".join(wrong)


def test_complexity_and_parameters(root: Path) -> None:
    """By ruff, with the bounds of pyproject.toml, and without its exceptions."""
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--select", "C901,PLR0912,PLR0913,PLR0915",
         "--ignore-noqa", "--output-format", "concise", "--quiet", "gateway", "adapters"],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_names_say_something(root: Path) -> None:
    wrong = [
        str(path.relative_to(root))
        for folder in ("gateway", "adapters", "tests", "benchmarks")
        for path in (root / folder).rglob("*.py")
        if not {".venv", "node_modules"} & set(path.parts)
        and {path.stem.lstrip("_"), path.parent.name} & NAMES_THAT_SAY_NOTHING
    ]
    assert not wrong


def test_every_module_says_what_it_is(modules: list[Any]) -> None:
    wrong = [module.place for module in modules if not ast.get_docstring(module.tree)]
    assert not wrong


def test_public_names_say_what_they_mean(modules: list[Any]) -> None:
    wrong = [
        f"{module.place}:{node.lineno}: {node.name}"
        for module in modules
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and not is_shape(node)
        and not ast.get_docstring(node)
    ]
    assert not wrong, "\n".join(wrong)


def is_shape(node: ast.AST) -> bool:
    """Whether a class only lists fields: the vendors' names say what they mean."""
    return isinstance(node, ast.ClassDef) and all(
        isinstance(inner, ast.AnnAssign | ast.Assign | ast.Pass) for inner in node.body
    )


def test_nothing_is_left_to_do_without_an_issue(texts: list[Path], root: Path) -> None:
    mark = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b(?!.*#\d)")
    wrong = [
        f"{path.relative_to(root)}:{number}"
        for path in texts
        if path.suffix in {".py", ".toml", ".sql", ".md", ""}
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if mark.search(line)
    ]
    assert not wrong
