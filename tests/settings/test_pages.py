"""Whatever a page shows as configuration can be put into a file and passes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gateway.settings.load import load
from gateway.settings.problems import ConfigError

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
OTHERS = ("[model_providers.", "[project.entry-points.")
"""How files of other programs are known: Codex's, and a Python package's."""

LEFT_OUT = re.compile(r"targets: is missing|is no provider of this file|which is no folder")
"""What an excerpt may leave to the rest of the file."""


def examples() -> list[object]:
    """The TOML blocks of all pages that are the gateway's own."""
    return [
        pytest.param(block, id=f"{page.name}-{number}")
        for page in PAGES
        for number, block in enumerate(
            re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL), 1
        )
        if not any(mark in block for mark in OTHERS)
    ]


@pytest.mark.parametrize("block", examples())
def test_an_example_is_sound(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in re.findall(r"\$\{(\w+)\}", block):
        monkeypatch.setenv(name, "sk-example")
    file = tmp_path / "gateway.toml"
    if block.startswith("[nodes."):  # a file of its own, in the folder of workflows
        (tmp_path / "workflows").mkdir()
        (tmp_path / "workflows" / "shown.toml").write_text(block, encoding="utf-8")
        block = '[runs]\nworkflows_dir = "workflows"\n'
    file.write_text(block, encoding="utf-8")
    try:
        load(file)
    except ConfigError as error:
        wrong = [str(p) for p in error.problems if not LEFT_OUT.search(str(p))]
        assert not wrong, "\n".join(wrong)
