"""Whatever a file holds: a snapshot, or faults with their places; never a traceback."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from copy import deepcopy
from datetime import date
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.settings.load import load
from gateway.settings.problems import ConfigError, Problem

REFERENCE = Path(__file__).parents[2] / "config" / "gateway.toml"
ENVIRONMENT = {
    name: "x"
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GATEWAY_KEY", "GATEWAY_PEPPER",
                 "METRICS_TOKEN", "CRM_TOKEN", "MCP_TOKEN")
}  # fmt: skip
WHOLE = tomllib.loads(
    re.sub(r"^#(?=\S)", "", REFERENCE.read_text(), flags=re.MULTILINE)
    .replace("patterns = []\n", "")
    .replace('#prices = "openai"', '#prices = "none"')
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner: Any = value.items() if isinstance(value, dict) else ()
    inner = enumerate(value) if isinstance(value, list) else inner
    for key, child in inner:
        yield (*path, key)
        yield from places(child, (*path, key))


PLACES = sorted(places(WHOLE), key=str)
ODD = st.recursive(
    st.one_of(
        st.integers(-(2**63), 2**63 - 1), st.booleans(), st.floats(), st.just(date(2027, 1, 1)),
        st.sampled_from(["", "x", "demo", "${", "${X}", "${OPENAI_API_KEY}", "file:", "a b",
                         "sqlite:///", "postgresql://u:p@h/d", "http://[::1", "*", "0.0.0.0"]),
        st.text(max_size=5),
    ),
    lambda child: st.one_of(
        st.lists(child, max_size=3), st.dictionaries(st.text(max_size=4), child, max_size=3)
    ),
    max_leaves=5,
)  # fmt: skip


def changed(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> None:
    """Put ``value`` at ``path``, unless an earlier change took the way there."""
    node: Any = document
    for step in path[:-1]:
        if not isinstance(node, dict | list):
            return
        if isinstance(node, dict) and step not in node:
            return
        if isinstance(node, list) and not (isinstance(step, int) and step < len(node)):
            return
        node = node[step]
    step = path[-1]
    if isinstance(node, dict) and isinstance(step, str):
        node[step] = value
    if isinstance(node, list) and step in range(len(node)):
        node[step] = value


def written(value: Any) -> str:
    """``value`` as inline TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quoted(k)} = {written(v)}" for k, v in value.items()) + "}"
    return str(value)


def quoted(text: str) -> str:
    return '"' + "".join(f"\\U{ord(c):08X}" if c < " " or c in '"\\\x7f' else c for c in text) + '"'


@given(st.lists(st.tuples(st.sampled_from(PLACES), ODD), min_size=1, max_size=4))
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_change_of_a_sound_file(
    tmp_path: Path, changes: list[tuple[tuple[Any, ...], Any]]
) -> None:
    document = deepcopy(WHOLE)
    for path, value in changes:
        changed(document, path, value)
    text = "\n".join(f"{quoted(key)} = {written(value)}" for key, value in document.items())
    for problem in faults(tmp_path, text):
        assert problem.line or not problem.where


def test_the_file_that_is_changed_is_sound(tmp_path: Path) -> None:
    text = "\n".join(f"{quoted(key)} = {written(value)}" for key, value in WHOLE.items())
    assert faults(tmp_path, text) == ()


def faults(folder: Path, text: str) -> tuple[Problem, ...]:
    """What is wrong with ``text`` in a folder that has the files it names."""
    for name in ("prompts", "agents", "workflows"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "certificates.pem").touch()
    file = folder / "gateway.toml"
    file.write_text(text, encoding="utf-8")
    try:
        load(file, ENVIRONMENT)
    except ConfigError as error:
        return error.problems
    return ()
