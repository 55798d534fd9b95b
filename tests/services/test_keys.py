"""Keys that are made at run time: each body means what it says, or is refused with the place."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.harness import ADMIN, gateway

WRONG: list[tuple[str, dict[str, Any]]] = [
    ("limits.rpm", {"limits": {"rpm": True}}),
    ("limits.rpm", {"limits": {"rpm": "5"}}),
    ("limits.tpm", {"limits": {"tpm": 1.5}}),
    ("limits.usd_total", {"limits": {"usd_total": True}}),
    ("limits.usd_per_day", {"limits": {"usd_per_day": 1e-30}}),
    ("limits.usd_per_day", {"limits": {"usd_per_day": "0.0000000009"}}),
    ("limits.usd_per_month", {"limits": {"usd_per_month": -1}}),
    ("expires_in", {"expires_in": True}),
    ("expires_in", {"expires_in": "60"}),
    ("models[1]", {"models": ["m-chat", "m-chta"]}),
    ("project", {"project": "a\nb"}),
    ("project", {"project": "\x00"}),
    ("name", {"name": "\x1b[31mred"}),
    ("name", {"name": " ci"}),
    ("name", {"name": "x" * 101}),
]


@pytest.mark.parametrize(("place", "said"), WRONG, ids=str)
async def test_what_would_mean_something_else(
    tmp_path: Path, place: str, said: dict[str, Any]
) -> None:
    async with gateway(tmp_path) as g:
        answer = await g.post("/admin/keys", {"name": "k", **said}, key=ADMIN)
        assert answer.status == 400, answer.body
        error = answer.json()["error"]
        assert error["param"] == place
        words = error["message"].removeprefix(place).lstrip(":")
        assert words.startswith((" must ", " there is no such model")), error["message"]
        assert "k" not in [key["name"] for key in (await g.get("/admin/keys")).json()["keys"]]


async def test_one_of_many_at_once_gets_the_name(tmp_path: Path) -> None:
    async with gateway(tmp_path) as g:
        body = {
            "name": "ci",
            "models": ["m-chat"],
            "expires_in": 60,
            "limits": {"usd_total": "1.5"},
        }
        answers = await asyncio.gather(*(g.post("/admin/keys", body, key=ADMIN) for _ in range(8)))
        assert sorted(answer.status for answer in answers) == [201] + [409] * 7
