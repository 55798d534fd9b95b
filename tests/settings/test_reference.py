"""``config/gateway.toml`` lists every setting with its default, and the documentation has a
heading for each: both are held equal to the code."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from adapters.canonical.facts import Facts
from adapters.wire.call import Timeouts
from gateway.settings import model, rooms
from gateway.settings.load import load
from gateway.settings.load.shape import read_shape
from gateway.settings.snapshot import (
    Alias,
    BreakerPolicy,
    KeySettings,
    Limits,
    ObserveSettings,
    Provider,
    ServerSettings,
    StoreSettings,
    Target,
)
from gateway.store.retention import DAYS

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "config" / "gateway.toml"
PAGE = ROOT / "docs" / "configuration.md"
ENVIRONMENT = {name: "x" for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GATEWAY_KEY")}


def whole() -> dict[str, Any]:
    """The reference file with every setting that is off switched on."""
    text = re.sub(r"^#(?=\S)", "", REFERENCE.read_text(), flags=re.MULTILINE)
    return tomllib.loads(text.replace("patterns = []\n", ""), parse_float=Decimal)


def table_in(annotation: Any) -> type[BaseModel] | None:
    """The table type inside an annotation, whatever it is wrapped in."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in get_args(annotation):
        found = table_in(argument)
        if found is not None:
            return found
    return None


def settings(kind: type[BaseModel], path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every setting there is: its path (``NAME`` for names), its annotation, its default."""
    for name, field in kind.model_fields.items():
        here = f"{path}.{name}" if path else name
        inner = table_in(field.annotation)
        if inner is None:
            yield here, field.annotation, field.get_default(call_default_factory=True)
        elif inner is model.FactsTable and path:
            yield here, field.annotation, None
        elif inner is model.RateTable:
            yield here, field.annotation, field.get_default(call_default_factory=True)
        else:
            named = get_origin(field.annotation) is dict
            yield from settings(inner, f"{here}.NAME" if named else here)


ALL = list(settings(model.Config))


def values(node: Any, steps: list[str]) -> Iterator[Any]:
    """What the document has at a path, in every table that ``NAME`` may stand for."""
    if isinstance(node, list):
        for item in node:
            yield from values(item, steps)
    elif not steps:
        yield node
    elif isinstance(node, dict):
        inner = node.values() if steps[0] == "NAME" else [node[s] for s in steps[:1] if s in node]
        for value in inner:
            if len(steps) == 1:
                yield value
            else:
                yield from values(value, steps[1:])


def test_the_reference_passes() -> None:
    snapshot = load(REFERENCE, ENVIRONMENT)
    assert set(snapshot.aliases) == {"smart"}


def test_the_reference_passes_with_everything_switched_on() -> None:
    config, faults = read_shape(whole(), model.Config)
    assert not faults
    assert config is not None


@pytest.mark.parametrize("path", [path for path, _, _ in ALL])
def test_the_reference_has_every_setting(path: str) -> None:
    assert list(values(whole(), path.split("."))), f"{path} is not in {REFERENCE.name}"


@pytest.mark.parametrize(
    ("path", "default"),
    [(path, default) for path, _, default in ALL if default not in (None, PydanticUndefined)],
)
def test_what_is_switched_on_shows_the_default(path: str, default: Any) -> None:
    live = tomllib.loads(REFERENCE.read_text())
    for value in values(live, path.split(".")):
        if isinstance(default, dict):
            continue  # a table of names that the reader chooses
        assert value == default, f"{path} shows {value}, the default is {default}"


def test_commented_settings_show_the_default_where_there_is_one() -> None:
    document = whole()
    examples = {"facts.NAME.thinking", "models.NAME.targets.facts"}
    for path, _, default in ALL:
        if default in (None, PydanticUndefined) or isinstance(default, dict):
            continue
        if path in examples or path.startswith("redaction.patterns"):
            continue
        shown = list(values(document, path.split(".")))
        if default == []:
            continue
        assert default in [float(v) if isinstance(v, Decimal) else v for v in shown], path


DESCRIBED_ELSEWHERE = {
    "models.NAME.timeouts.": "providers.NAME.timeouts.",
    "models.NAME.targets.timeouts.": "providers.NAME.timeouts.",
    "limits.default.": "keys.limits.",
}
"""Tables of the same kind in several places are explained once."""


def heading(path: str) -> str:
    """How the page writes a setting's path: ``[]`` behind lists of tables."""
    for prefix, other in DESCRIBED_ELSEWHERE.items():
        if path.startswith(prefix):
            path = other + path.removeprefix(prefix)
    return re.sub(r"\b(keys|targets|patterns)\.", r"\1[].", path)


def documented() -> dict[str, str]:
    """What the page says first under each setting's heading."""
    found = re.findall(r"^### `([^`]+)`\n\n([^\n]+)", PAGE.read_text(), flags=re.MULTILINE)
    return dict(found)


def test_every_setting_has_a_heading_and_no_other_has() -> None:
    assert set(documented()) == {heading(path) for path, _, _ in ALL}


@pytest.mark.parametrize(("path", "default"), [(path, default) for path, _, default in ALL])
def test_the_page_says_the_default(path: str, default: Any) -> None:
    said = documented()[heading(path)]
    if default is PydanticUndefined:
        assert said.startswith("Required.")
    elif default is None:
        assert said.startswith("Unset by default.")
    else:
        word = re.match(r"Default: `([^`]*)`", said)
        assert word is not None, said
        assert tomllib.loads(f"value = {word.group(1)}") == {"value": default}


@pytest.mark.parametrize(
    ("table", "frozen", "renamed"),
    [
        (model.ServerTable, ServerSettings, {}),
        (model.ObserveTable, ObserveSettings, {}),
        (model.StoreTable, StoreSettings, {"retention": None}),
        (model.BreakerTable, BreakerPolicy, {}),
        (model.ProviderTable, Provider, {"prices": None, "timeouts": None}),
        (model.AliasTable, Alias, {"timeouts": None, "breaker": None, "next_on": None}),
        (model.KeyTable, KeySettings, {"limits": None}),
        (model.TargetTable, Target, dict.fromkeys(("provider", "model", "facts", "timeouts"))),
        (model.FactsTable, Facts, {"vendor": None, "has": None, "lacks": None, "accepts": None,
                                   "refuses": None, "family": None, "one_of": None,
                                   "efforts": None, "thinking": None}),
    ],
)  # fmt: skip
def test_the_file_and_the_snapshot_agree_on_defaults(
    table: type[BaseModel], frozen: type, renamed: dict[str, None]
) -> None:
    """Two places state a default, for a file and for a snapshot made in a test; one value."""
    of_snapshot = {f.name: f for f in dataclasses.fields(frozen)}
    for name, field in table.model_fields.items():
        if name in renamed or field.is_required():
            continue
        default = of_snapshot[name].default
        if default is dataclasses.MISSING:
            factory = of_snapshot[name].default_factory
            default = None if factory is dataclasses.MISSING else factory()
        mine = field.get_default(call_default_factory=True)
        mine = tuple(mine) if isinstance(mine, list) else mine
        assert mine == default or (mine is None and default is None), name


def test_limits_and_time_outs_have_the_same_names_everywhere() -> None:
    money = {"usd_per_day": "nano_per_day", "usd_per_month": "nano_per_month",
             "usd_total": "nano_total"}  # fmt: skip
    named = {money.get(name, name) for name in model.LimitsTable.model_fields}
    assert named == {f.name for f in dataclasses.fields(Limits)}
    assert set(model.TimeoutsTable.model_fields) == {f.name for f in dataclasses.fields(Timeouts)}


def test_retention_names_the_tables_that_are_swept() -> None:
    defaults = {n: f.default for n, f in model.RetentionTable.model_fields.items()}
    assert defaults == DAYS


def test_no_table_takes_unknown_keys() -> None:
    for module in (model, rooms):
        for kind in vars(module).values():
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                assert kind.model_config.get("extra") == "forbid"
                assert kind.model_config.get("strict") is True
