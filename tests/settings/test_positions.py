"""The scanner's lines against the standard library's parser."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.settings.load.positions import positions

CONFIG = Path(__file__).parents[2] / "config"


def paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every key path of a parsed document."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, inner in items:
        yield (*path, key)
        yield from paths(inner, (*path, key))


def test_each_kind_of_key() -> None:
    text = """\
# [not.a.table]
top = 1
"quoted.key" = 'x # no comment'
dotted . key = [ # a comment
  1,
  { inline = true, deep.er = "}" },
]
text = \"\"\"
[not_a_table]
not = "a key"
\"\"\"
raw = '''
['no']
'''

[table]
a = 1979-05-27T07:32:00Z
[table."sub.table"]
b = [[1, 2],
     [3]]
[[list]]
name = "first"
[[list]]
name = "second"
[list.inner]
c = 1
[[list.more]]
d = 1
[[list.more]]
d = 2
"""
    found = positions(text)
    assert found[("top",)] == 2
    assert found[("quoted.key",)] == 3
    assert found[("dotted", "key")] == 4
    assert found[("dotted", "key", 0)] == 5
    assert found[("dotted", "key", 1, "inline")] == 6
    assert found[("dotted", "key", 1, "deep", "er")] == 6
    assert found[("table",)] == 16
    assert found[("table", "sub.table", "b", 1)] == 20
    assert found[("list", 0, "name")] == 22
    assert found[("list", 1, "name")] == 24
    assert found[("list", 1, "inner", "c")] == 26
    assert found[("list", 1, "more", 1, "d")] == 30
    assert set(found) == set(paths(tomllib.loads(text)))


@pytest.mark.parametrize("name", ["gateway.toml", "demo.toml", "models.toml"])
def test_finds_every_key_of_our_own_files(name: str) -> None:
    text = (CONFIG / name).read_text()
    assert set(positions(text)) == set(paths(tomllib.loads(text)))


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=6)
VALUES = st.recursive(
    st.one_of(st.integers(-9, 9), st.booleans(), st.just('"a # [b] = {c}"'), st.just("'x]'")),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)


def quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ",\n".join(written(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quoted(k)} = {written(v)}" for k, v in value.items()) + "}"
    return str(value)


@given(st.dictionaries(NAMES, VALUES, max_size=5))
def test_finds_what_the_parser_finds(document: dict[str, Any]) -> None:
    text = "\n".join(f"{quoted(name)} = {written(value)}" for name, value in document.items())
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return  # a list inside an inline table may not break the line; not our matter
    assert set(positions(text)) == set(paths(parsed))
