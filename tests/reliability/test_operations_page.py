"""``docs/operations.md`` lists the operator's doors and what they take, and they do as it says."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

from starlette.routing import Route

from gateway.http.admin import router
from gateway.services.keys import KeyRequest, LimitsRequest
from gateway.services.usage import GROUPS
from tests.harness import ADMIN, Harness

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()


def listed(heading: str, number: int = 0) -> list[str]:
    """The first column of a table below a heading."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    found = re.findall(r"(?:^\|.*\|\n)+", section, re.MULTILINE)[number]
    return [line.split("|")[1].strip() for line in found.splitlines()[2:]]


def test_every_door_of_the_operator_is_there() -> None:
    doors = {
        f"`{method} {route.path}`"
        for route in router.routes
        if isinstance(route, Route)
        for method in route.methods or ()
        if method != "HEAD"
    }
    assert set(listed("The operator's doors")) == doors | {"`/admin/prompts`"}


def test_every_field_of_a_key_is_there() -> None:
    assert listed("Keys") == [f"`{name}`" for name in KeyRequest.model_fields]
    limits = re.findall(r"`(\w+)`", " ".join(listed("Keys", 1)))
    assert limits == list(LimitsRequest.model_fields)


def test_the_groups_of_a_bill_are_there() -> None:
    (line,) = (row for row in PAGE.splitlines() if row.startswith("| `GET /admin/usage`"))
    assert set(re.findall(r"\w+", line.split("sums by")[1])) - {"or"} == set(GROUPS)


async def test_a_key_is_listed_with_what_it_may_do(g: Harness, make_key: Any) -> None:
    """In the words that it was asked for in."""
    limits = {"rpm": 60, "concurrent": 0, "usd_per_day": 0.05}
    await make_key(models=["quick-held"], limits=limits)
    await make_key()
    keys = (await g.get("/admin/keys")).json()["keys"]
    (tight, free) = (key for key in keys if key["source"] == "store")
    assert (tight["models"], tight["limits"]) == (["quick-held"], limits)
    assert (free["models"], free["limits"]) == (None, {})


async def test_a_bill_in_groups_and_in_one_sum(g: Harness) -> None:
    for model in ("m-openai", "m-claude", "m-claude"):
        assert (await g.chat(model)).status == 200
    found = (await g.get("/admin/usage?by=alias,%20provider")).json()
    assert found["by"] == ["alias", "provider"]
    assert [(row["alias"], row["provider"], row["requests"]) for row in found["usage"]] == [
        ("m-claude", "anthropic", 2),
        ("m-openai", "openai", 1),
    ]
    whole = (await g.get("/admin/usage?by=")).json()
    assert (whole["by"], [row["attempts"] for row in whole["usage"]]) == ([], [3])
    answer = await g.get("/admin/usage?by=alias&format=csv&since=2020-01-01")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(answer.body.decode().splitlines()))
    assert [(row["alias"], row["requests"]) for row in rows] == [
        ("m-claude", "2"),
        ("m-openai", "1"),
    ]
    assert (await g.get("/admin/usage?until=2020-01-01")).json()["usage"] == []
    for wrong in ("by=colour", "since=lately", "format=xml", "colour=red"):
        assert (await g.get(f"/admin/usage?{wrong}", key=ADMIN)).status == 400, wrong
