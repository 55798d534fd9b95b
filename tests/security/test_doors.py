"""Every door × every visitor, from the application's own route table: deny by default."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute
from starlette.routing import Route

from gateway.http.deps import OPEN
from gateway.http.routes import doors
from gateway.settings.snapshot import StoreSettings
from gateway.store import connect
from tests.harness import ADMIN, ENVIRONMENT, KEY, Harness, gateway

ROOT = Path(__file__).parents[2]
QUIET = '[observe]\nlog_level = "error"\n'
CEILING = 2.0
"""Seconds until a revoked key is refused: half a second is usual, one is promised."""


def routes(router: Any) -> Iterator[APIRoute | Route]:
    """The router's own routes and those of routers in it; nothing else may stand there."""
    for route in router.routes:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            yield from routes(inner)
        else:
            assert isinstance(route, APIRoute | Route), f"a door that nobody checks: {route}"
            yield route


def table(g: Harness) -> list[tuple[str, str]]:
    """Every method and path that the application answers, parameters filled in."""
    return [
        (method, re.sub(r"\{[^}]+\}", "x", route.path))
        for route in routes(doors(g.state))
        for method in sorted(route.methods or ())
    ]


async def knock(
    g: Harness, method: str, path: str, key: str | None, header: str = "bearer"
) -> tuple[int, Any]:
    headers = {"content-type": "application/json"}
    if key is not None and header == "bearer":
        headers["authorization"] = f"Bearer {key}"
    elif key is not None:
        headers["x-api-key"] = key
    data = b"{}" if method in ("POST", "PUT", "PATCH") else None
    async with g.http.request(method, g.url + path, headers=headers, data=data) as reply:
        body = await reply.read()
        is_json = reply.headers.get("content-type", "").startswith("application/json")
        return reply.status, (await reply.json() if body and is_json else None)


async def revoked(g: Harness, role: str) -> str:
    """A key that opened doors until a moment ago."""
    body = {"name": f"gone-{role}", "role": role}
    made = (await g.post("/admin/keys", body, key=ADMIN)).json()
    headers = {"authorization": f"Bearer {ADMIN}"}
    async with g.http.delete(g.url + f"/admin/keys/{made['id']}", headers=headers) as reply:
        assert reply.status == 200
    return str(made["key"])


async def test_every_door_and_every_visitor(tmp_path: Path) -> None:
    async with gateway(tmp_path, QUIET) as g:
        gone = {role: await revoked(g, role) for role in ("caller", "admin")}
        expired = (
            await g.post("/admin/keys", {"name": "old", "expires_in": 0.01}, key=ADMIN)
        ).json()["key"]
        await asyncio.sleep(0.05)
        strangers = (None, "", "nonsense", "sk-gw-" + "x" * 43, *gone.values(), expired)
        doors_seen = table(g)
        assert len(doors_seen) > 15
        for method, path in doors_seen:
            where = f"{method} {path}"
            if (method, path) in OPEN:
                assert (await knock(g, method, path, None))[0] == 200, where
                continue
            for key in strangers:
                status, body = await knock(g, method, path, key)
                assert status == 401, f"{where} with {key!r} is {status}"
                if method != "HEAD":
                    assert body["error"]["type"] == "authentication_error", where
            is_admin = path.startswith("/admin")
            status, body = await knock(g, method, path, KEY)
            if is_admin:
                assert status == 403, where
                assert body["error"]["code"] == "admin_only"
            else:
                assert status not in (401, 403, 500), where
            status, _ = await knock(g, method, path, ADMIN)
            assert status not in (401, 403, 500), where
            status, _ = await knock(g, method, path, ADMIN, header="x-api-key")
            assert status not in (401, 403, 500), f"{where} by x-api-key"
        assert not g.simulator.log, "no empty body reached a provider"


NEVER_READ = frozenset(
    f"{prefix}{path}"
    for prefix in ("", "/v1")
    for path in (
        "/admin/reload",
        "/responses/compact",
        "/responses/x/cancel",
        "/runs/x/cancel",
        "/runs/x/pause",
        "/runs/x/resume",
    )
)
"""Doors that take a POST and look at no body."""


async def test_a_body_is_read_for_whoever_may_come_in_and_no_further(tmp_path: Path) -> None:
    """Strangers are not listened to, and nobody fills the memory."""
    small = "[server]\nmax_body_mb = 0.01\n"
    async with gateway(tmp_path, QUIET, small) as g:
        wrong = []
        for method, path in table(g):
            if method not in ("POST", "PUT", "PATCH"):
                continue
            where = f"{method} {path}"
            broken, headers = b'{"broken', {"content-type": "application/json"}
            async with g.http.request(method, g.url + path, data=broken, headers=headers) as reply:
                if reply.status != 401:
                    wrong.append(f"{where} reads a stranger's body")
            headers["authorization"] = f"Bearer {ADMIN}"
            large = b'{"name": "' + b"x" * 20_000 + b'"}'
            async with g.http.request(method, g.url + path, data=large, headers=headers) as reply:
                if path not in NEVER_READ and reply.status != 413:
                    wrong.append(f"{where} reads a body of any size")
        assert not wrong, "\n".join(wrong)


async def test_what_is_open_is_named(tmp_path: Path) -> None:
    """And tells nothing but how it is."""
    async with gateway(tmp_path, QUIET) as g:
        known = set(table(g))
        assert known >= OPEN
        for path in ("/healthz", "/readyz"):
            async with g.http.get(g.url + path) as reply:
                assert set(await reply.json()) == {"status"}
        for path in ("/docs", "/redoc", "/openapi.json", "/admin", "/.env", "/v1/../admin/keys"):
            async with g.http.get(g.url + path) as reply:
                assert reply.status in (401, 404), path


async def test_the_host_header_opens_nothing(tmp_path: Path) -> None:
    async with gateway(tmp_path, QUIET) as g:
        for host in ("localhost", "127.0.0.1", "x/healthz", "x?/readyz"):
            headers = {"host": host, "x-forwarded-for": "127.0.0.1", "x-original-url": "/healthz"}
            async with g.http.get(g.url + "/admin/keys", headers=headers) as reply:
                assert reply.status in (400, 401)


async def test_a_key_shown_in_the_url_opens_nothing(tmp_path: Path) -> None:
    async with gateway(tmp_path, QUIET) as g:
        for name in ("key", "api_key", "access_token"):
            async with g.http.get(g.url + f"/v1/models?{name}={KEY}") as reply:
                assert reply.status == 401


@pytest.mark.parametrize("way", ["api", "another process's store", "command"])
async def test_a_revoked_key_is_refused_within_a_second(tmp_path: Path, way: str) -> None:
    async with gateway(tmp_path, QUIET) as g:
        made = (await g.post("/admin/keys", {"name": "late"}, key=ADMIN)).json()
        assert (await g.get("/v1/models", key=made["key"])).status == 200
        if way == "api":
            headers = {"authorization": f"Bearer {ADMIN}"}
            async with g.http.delete(f"{g.url}/admin/keys/{made['id']}", headers=headers) as reply:
                assert reply.status == 200
        elif way == "command":
            await command(tmp_path, "keys", "revoke", "late")
        else:
            url = f"sqlite:///{tmp_path / 'gateway.db'}"
            beside = connect(StoreSettings(url=url), serving=False)
            await beside.open()
            assert await beside.revoke_key(made["id"], time.time())
            await beside.close()
        began = time.monotonic()
        while (await g.get("/v1/models", key=made["key"])).status == 200:
            await asyncio.sleep(0.02)
            assert time.monotonic() - began < CEILING


async def test_a_key_made_by_another_process_opens_within_a_second(tmp_path: Path) -> None:
    async with gateway(tmp_path, QUIET) as g:
        key = (await command(tmp_path, "keys", "create", "fresh")).strip()
        began = time.monotonic()
        while (await g.get("/v1/models", key=key)).status != 200:
            await asyncio.sleep(0.02)
            assert time.monotonic() - began < CEILING


async def command(folder: Path, *arguments: str) -> str:
    """``gateway …`` as a process of its own; its output."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", *arguments,
        cwd=folder, env={**os.environ, **ENVIRONMENT, "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 0
    return out.decode()


def files(folder: Path) -> list[tuple[str, bytes]]:
    """Everything that was written there."""
    return [(file.name, file.read_bytes()) for file in folder.iterdir()]


async def test_keys_are_shown_once_and_stored_as_digests(tmp_path: Path) -> None:
    async with gateway(tmp_path, QUIET) as g:
        made = (await g.post("/admin/keys", {"name": "once"}, key=ADMIN)).json()
        text = made["key"]
        assert len(text.removeprefix("sk-gw-")) >= 43, "256 bits in base64"
        assert text not in (await g.get("/admin/keys")).body.decode()
        for name, content in files(tmp_path):
            assert text.encode() not in content, name
        refused = await g.post("/admin/keys", {"name": "once"}, key=ADMIN)
        assert refused.status == 409
        assert text.encode() not in refused.body
