"""What ``gateway check`` finds in the policy room before the port opens."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.app import check
from gateway.settings.load import load
from gateway.settings.problems import Problem

BASE = """
[providers.p]
dialect = "openai-chat"
simulator = true

[models.m]
targets = [{ provider = "p", model = "echo" }]
"""


def problems(folder: Path, text: str, **files: str) -> list[Problem]:
    (folder / "prompts").mkdir()
    for name, content in files.items():
        (folder / "prompts" / f"{name}.md").write_text(content)
    path = folder / "gateway.toml"
    path.write_text(BASE + text)
    return check(load(path, {}))


GOOD = """
prompt = "kind@production"
redaction = "reversible"
[prompts]
dir = "prompts"
[redaction]
kinds = ["EMAIL", "TICKET"]
[[redaction.patterns]]
kind = "TICKET"
pattern = 'TCK-[0-9]{6}'
"""


def test_a_sound_configuration_has_none(tmp_path: Path) -> None:
    kind = (
        "+++\nlabels = ['production']\nvariables = { a = { default = 'x' } }\n+++\nBe kind {{ a }}."
    )
    assert problems(tmp_path, GOOD, kind=kind) == []


BAD = [
    ("[redaction]\nkinds = ['EMIAL']", {}, "redaction.kinds[0]", "did you mean 'EMAIL'"),
    (
        "[[redaction.patterns]]\nkind = 'TEXT'\npattern = 'x'",
        {},
        "redaction.patterns[0].kind",
        "meaning of its own",
    ),
    (
        "[[redaction.patterns]]\nkind = 'X'\npattern = '(a+)+'",
        {},
        "redaction.patterns[0].pattern",
        "without an end",
    ),
    ("[prompts]\ndir = 'prompts'", {"p": "{{ x }}"}, "system", "'x', which is not defined"),
    ("[prompts]\ndir = 'prompts'", {"p": "+++\nmodel = 'n'\n+++\nx"}, "model", "no model"),
    (
        "[prompts]\ndir = 'prompts'",
        {"p": "+++\noutput = { schema = { type = 7 } }\n+++\nx"},
        "output.schema",
        "",
    ),
    (
        "prompt = 'p@7'\n[prompts]\ndir = 'prompts'",
        {"p": "x"},
        "models.m.prompt",
        "no such version",
    ),
    (
        "prompt = 'p'\n[prompts]\ndir = 'prompts'",
        {"p": "+++\nvariables = { a = 'string' }\n+++\nx"},
        "models.m.prompt",
        "needs the variable 'a'",
    ),
]


@pytest.mark.parametrize(("text", "files", "where", "why"), BAD)
def test_what_is_wrong_is_told_with_its_place(
    tmp_path: Path, text: str, files: dict[str, str], where: str, why: str
) -> None:
    (problem,) = problems(tmp_path, text, **files)
    assert problem.where == where
    assert why in problem.message
    assert (problem.file is not None) == (bool(files) and not where.startswith("models"))
