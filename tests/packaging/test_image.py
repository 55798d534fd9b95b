"""The Dockerfile, read: two stages, no root, nothing copied that is not there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
LINES = [line.split(maxsplit=1) for line in TEXT.splitlines() if re.match(r"[A-Z]+ ", line)]


def told(word: str) -> list[str]:
    return [rest for name, rest in LINES if name == word]


def test_two_stages_on_a_slim_base() -> None:
    first, second = told("FROM")
    assert first.endswith(" AS build")
    assert re.fullmatch(r"python:3\.\d+-slim", second)
    assert first.startswith(second), "both stages need the same Python: the environment is copied"


def test_it_does_not_run_as_root() -> None:
    (user,) = told("USER")
    assert user not in ("root", "0")
    order = [name for name, _ in LINES]
    assert order.index("USER") < order.index("ENTRYPOINT")
    assert "RUN" not in order[order.index("USER") :]


def test_it_serves_the_same_program() -> None:
    assert told("ENTRYPOINT") == ['["gateway"]']
    assert told("CMD") == ['["serve"]']


def test_what_it_copies_exists_and_is_not_ignored() -> None:
    let_through = {
        line.removeprefix("!")
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    for line in told("COPY"):
        if line.startswith("--from"):
            continue
        for source in line.split()[:-1]:
            assert (ROOT / source).exists(), source
            assert source in let_through, f".dockerignore keeps {source} out"


def test_requirements_are_installed_with_hashes() -> None:
    installs = [line for line in told("RUN") if "pip install" in line]
    assert any("--require-hashes" in line and "requirements.txt" in line for line in installs)
    assert all("--require-hashes" in line or "--no-deps" in line for line in installs)
    assert "http" not in " ".join(told("ADD"))
