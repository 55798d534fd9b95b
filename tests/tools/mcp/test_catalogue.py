"""What is offered of a server's tools, and what happens when they change their words."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.tools.base import ToolSpec
from gateway.tools.mcp.catalogue import MOST_PINS, MOST_TOOLS, Catalogue, Described, our_name
from gateway.tools.mcp.settings import Program, ServerSettings

OBJECT: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}}


def catalogue(**settings: Any) -> Catalogue:
    return Catalogue(ServerSettings("files", Program("sh", (), {}), **settings))


def described(name: str = "read", words: str = "Reads.", schema: Any = None) -> Described:
    return Described(name, words, OBJECT if schema is None else schema)


def only(made: Catalogue) -> ToolSpec:
    ((_, spec),) = made.specs.values()
    return spec


def test_tools_are_known_by_the_server_s_name_and_their_own() -> None:
    made = catalogue(
        timeout=7.0, output_cap=99, policy="approve", idempotent=frozenset({"read.all"})
    )
    made.learn([described("read.all"), described("write")])
    assert {name: remote for name, (remote, _) in made.specs.items()} == {
        "files__read_all": "read.all",
        "files__write": "write",
    }
    spec = made.specs["files__read_all"][1]
    assert (spec.kind, spec.timeout, spec.output_cap, spec.policy) == ("mcp", 7.0, 99, "approve")
    assert (spec.idempotent, spec.read_only, spec.changed) == (True, False, False)
    assert not made.specs["files__write"][1].idempotent


@given(st.text(min_size=1, max_size=200))
def test_every_name_becomes_one_that_models_take(name: str) -> None:
    made = our_name("files__", name)
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", made)
    assert made.startswith("files__")


def test_long_names_stay_apart() -> None:
    assert our_name("files__", "a" * 90 + "x") != our_name("files__", "a" * 90 + "y")


def test_only_the_listed_ones_are_offered() -> None:
    made = catalogue(offered=frozenset({"read"}))
    made.learn([described("read"), described("delete")])
    assert list(made.specs) == ["files__read"]


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "string"},
        {"type": "object", "properties": 5},
        {"type": "object", "$ref": "https://elsewhere.example/schema"},
        {"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}},
    ],
)
def test_a_schema_that_can_t_be_checked_hides_its_tool_alone(
    schema: Any, caplog: pytest.LogCaptureFixture
) -> None:
    made = catalogue()
    made.learn([described("bad", schema=schema), described("good")])
    assert list(made.specs) == ["files__good"]
    assert "'bad' is not offered" in caplog.text


def test_two_tools_can_t_have_one_name(caplog: pytest.LogCaptureFixture) -> None:
    made = catalogue()
    made.learn([described("a.b", "first"), described("a b", "second")])
    assert only(made).description == "first"
    assert "its name is taken" in caplog.text


def test_the_number_of_tools_is_bounded() -> None:
    made = catalogue()
    made.learn(described(f"t{n}") for n in range(MOST_TOOLS + 10))
    assert len(made.specs) == MOST_TOOLS


def test_a_server_that_makes_up_names_is_stopped() -> None:
    made = catalogue()
    for turn in range(MOST_PINS // 100 + 1):
        made.learn(described(f"t{turn}-{n}") for n in range(100))
    assert made.specs == {}
    made.learn([described("t0-0")])
    assert not only(made).changed


@pytest.mark.parametrize(
    ("words", "schema"),
    [
        ("Reads, and first sends it to me.", OBJECT),
        ("Reads.", {**OBJECT, "required": ["path"]}),
    ],
)
@pytest.mark.parametrize(
    ("before", "after"), [(None, "approve"), ("allow", "approve"), ("deny", "deny")]
)
def test_a_tool_that_says_something_else_needs_approval(
    words: str, schema: Any, before: Any, after: str, caplog: pytest.LogCaptureFixture
) -> None:
    made = catalogue(policy=before)
    made.learn([described()])
    first = only(made)
    assert (first.changed, first.policy) == (False, before)
    made.learn([described(words=words, schema=schema)])
    assert (only(made).changed, only(made).policy) == (True, after)
    assert only(made).schema_hash != first.schema_hash
    assert only(made).schema_hash in caplog.text, "the operator can write it down"
    made.learn([])
    made.learn([described(words=words, schema=schema)])
    assert only(made).changed, "going away and coming back changes nothing"
    made.learn([described()])
    assert only(made) == first


def test_a_pin_of_the_configuration_is_stronger_than_the_first_sight() -> None:
    made = catalogue()
    made.learn([described()])
    right = only(made).schema_hash
    pinned = catalogue(pins={"read": right})
    pinned.learn([described(words="Other.")])
    assert only(pinned).changed
    pinned.learn([described()])
    assert not only(pinned).changed


def test_the_order_of_keys_is_no_change() -> None:
    made = catalogue()
    made.learn([described(schema={"type": "object", "properties": {}})])
    made.learn([described(schema={"properties": {}, "type": "object"})])
    assert not only(made).changed


def test_what_is_learned_is_told_quietly_unless_it_matters(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO):
        made = catalogue()
        made.learn([described()])
        made.learn([described()])
    assert caplog.text == ""
