"""The locked requirements: every package with hashes, from nowhere in particular."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
FILES = ("requirements-build.txt", "requirements.txt", "requirements-dev.txt")
PINNED = re.compile(r"^([a-z0-9][a-z0-9._-]*)==([^ ;\\]+)", re.MULTILINE)


def pins(name: str) -> dict[str, str]:
    return dict(PINNED.findall((ROOT / name).read_text()))


@pytest.mark.parametrize("name", FILES)
def test_every_package_is_pinned_with_hashes(name: str) -> None:
    text = (ROOT / name).read_text()
    assert pins(name)
    for block in re.split(r"\n(?=\S)", text):
        if not block.startswith("#"):
            assert PINNED.match(block), block
            assert "--hash=sha256:" in block, block


@pytest.mark.parametrize("name", FILES)
def test_no_index_address(name: str) -> None:
    text = (ROOT / name).read_text()
    assert "://" not in text
    assert not re.search(r"^\s*(-i|-f|--index-url|--extra-index-url|--find-links)\b", text, re.M)
    assert " @ " not in text


def test_the_tests_run_on_what_serves() -> None:
    serving, testing = pins("requirements.txt"), pins("requirements-dev.txt")
    assert {name: testing.get(name) for name in serving} == serving


@pytest.mark.parametrize(
    ("name", "group"), [("requirements.txt", None), ("requirements-dev.txt", "dev")]
)
def test_pins_lie_within_the_ranges_of_pyproject(name: str, group: str | None) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"]
    if group is not None:
        wanted = wanted + project["optional-dependencies"][group]
    found = pins(name)
    for line in wanted:
        requirement = Requirement(line)
        pin = found.get(requirement.name.lower())
        assert pin is not None, f"{requirement.name} is not locked: run make lock"
        assert requirement.specifier.contains(pin), f"{requirement} is locked as {pin}: make lock"
