"""What must and must not stand in the project's files, and documents that match the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

TOP = {
    "pyproject.toml", "README.md", "CHANGELOG.md", "Makefile", "Dockerfile", "gateway",
    "adapters", "tests", "config", "benchmarks", "docs", "requirements.txt",
    "requirements-dev.txt", "requirements-build.txt",
}  # fmt: skip
MACHINE_PATH = re.compile(r"(?<![\w.\"'`$}/])/(?:home|Users|root|work|mnt)/[\w.-]+")
SECRETS = re.compile(
    r"sk-ant-api\d\d-[\w-]{40,}|sk-proj-[\w-]{40,}|AKIA(?!\w*EXAMPLE)[A-Z0-9]{16}|gh[pous]_\w{36}"
    r"|-----BEGIN (?:RSA |EC )?PRIVATE KEY-----\n(?!.*test)"
)


def test_the_top_holds_what_it_should(root: Path) -> None:
    shown = {path.name for path in root.iterdir() if not path.name.startswith(".")}
    made = {"build", "dist"} | {name for name in shown if name.endswith((".egg-info", ".db"))}
    shown -= made | {name for name in shown if ".db-" in name or ".db." in name}
    assert shown - TOP == set(), "files at the top that nobody expects there"
    assert TOP - shown == set(), "files that are missing at the top"


def test_no_path_of_a_machine(texts: list[Path], root: Path) -> None:
    wrong = [
        f"{path.relative_to(root)}: {found.group()}"
        for path in texts
        if (found := MACHINE_PATH.search(path.read_text(encoding="utf-8")))
    ]
    assert not wrong, "\n".join(wrong)


def test_no_secret(texts: list[Path], root: Path) -> None:
    wrong = [
        str(path.relative_to(root))
        for path in texts
        if SECRETS.search(path.read_text(encoding="utf-8"))
    ]
    assert not wrong, "\n".join(wrong)


def test_every_dependency_has_its_reason(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    direct = {re.split(r"[\[<>=!~; ]", line)[0].lower() for group in groups for line in group}
    page = (root / "docs" / "dependencies.md").read_text()
    explained = set(re.findall(r"^\| `([\w.-]+)` \|", page, flags=re.MULTILINE))
    assert direct - explained == set(), "direct dependencies without a line"
    assert explained - direct == set(), "lines without a dependency"


def test_the_map_shows_every_room(modules: list[Any], root: Path) -> None:
    page = (root / "docs" / "architecture.md").read_text()
    rooms = {".".join(module.name.split(".")[:2]) for module in modules if "." in module.name}
    missing = {room for room in rooms if f"`{room}`" not in page}
    assert not missing, "rooms that docs/architecture.md does not show"


def test_links_lead_somewhere(root: Path) -> None:
    wrong = []
    for page in [root / "README.md", root / "CHANGELOG.md", *(root / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            if not (page.parent / target).exists():
                wrong.append(f"{page.relative_to(root)}: {target}")
    assert not wrong, "\n".join(wrong)


def test_make_targets_of_the_readme_exist(root: Path) -> None:
    makefile = (root / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, flags=re.MULTILINE))
    pages = [root / "README.md", *(root / "docs").glob("*.md")]
    named = {n for p in pages for n in re.findall(r"(?:^|`)make ([a-z-]+)", p.read_text(), re.M)}
    assert named - targets == set()
