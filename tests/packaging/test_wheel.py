"""What is built is the whole program: every module, migration and shipped table."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The files in a wheel built from a copy of the tree."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source)
    for name in ("gateway", "adapters", "config"):
        shutil.copytree(
            ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__")
        )
    wheels = tmp_path_factory.mktemp("wheels")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
         "--disable-pip-version-check", "--wheel-dir", str(wheels), str(source)],
        check=True, timeout=120,
    )  # fmt: skip
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_every_module_is_in_it(names: set[str]) -> None:
    modules = {
        path.relative_to(ROOT).as_posix()
        for package in ("gateway", "adapters")
        for path in (ROOT / package).rglob("*.py")
    }
    assert modules - names == set(), "a folder without __init__.py is no package"


def test_every_migration_and_table_is_in_it(names: set[str]) -> None:
    data = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "gateway").rglob("*")
        if path.is_file() and path.suffix in {".sql", ".toml", ".html", ".json"}
    }
    assert {"gateway/settings/shipped/demo.toml", "gateway/settings/shipped/models.toml"} <= data
    assert data - names == set(), "data that [tool.setuptools.package-data] does not name"


def test_nothing_else_is_in_it(names: set[str]) -> None:
    strangers = {name for name in names if not name.startswith(("gateway/", "adapters/", "llm_"))}
    assert strangers == set()


def test_the_shipped_tables_are_those_of_config() -> None:
    for name in ("demo.toml", "models.toml"):
        shipped = ROOT / "gateway" / "settings" / "shipped" / name
        assert shipped.read_bytes() == (ROOT / "config" / name).read_bytes()
