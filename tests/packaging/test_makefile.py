"""The Makefile works with the make that macOS has (3.81), and offers what it must."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Makefile").read_text()

TARGETS = (
    "install", "run", "test", "test-all", "check", "bench", "bench-full", "soak", "faults",
    "clients", "clean", "lock",
)  # fmt: skip
NEWER_THAN_3_81 = {
    ".ONESHELL": r"^\.ONESHELL", "!=": r"^\w+\s*!=", "::=": r"::=", "$(file": r"\$\(file ",
    "undefine": r"^undefine", "private": r"^private ", "--output-sync": r"--output-sync",
    "$(let": r"\$\(let ", "grouped targets": r"&:",
}  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_it_has_the_target(target: str) -> None:
    assert re.search(rf"^{target}:.*## .+", TEXT, re.MULTILINE), "no target, or no word about it"


@pytest.mark.parametrize("word", NEWER_THAN_3_81)
def test_it_uses_nothing_that_make_3_81_lacks(word: str) -> None:
    assert not re.search(NEWER_THAN_3_81[word], TEXT, re.MULTILINE)


def dry(*arguments: str) -> str:
    """What make would do."""
    done = subprocess.run(
        ["make", "--dry-run", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_run_starts_the_demo_on_the_port_that_was_asked_for() -> None:
    assert "gateway demo --port 8080" in dry("run")
    assert "gateway demo --port 9000" in dry("run", "PORT=9000")


def test_the_two_suites_leave_nothing_out() -> None:
    assert '-m "not all"' in dry("test")
    assert "-m all" in dry("test-all")
    run = (ROOT / ".ci" / "run").read_text()
    assert run.index("make test ") < run.index("make test-all")


def test_every_target_that_is_no_file_says_so() -> None:
    phony = " ".join(re.findall(r"^\.PHONY:((?:.*\\\n)*.*)", TEXT, re.MULTILINE))
    for target in re.findall(r"^([a-z][a-z-]*):", TEXT, re.MULTILINE):
        assert re.search(rf"\b{target}\b", phony), target
