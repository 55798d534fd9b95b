"""``http_get``: no address inside is reached, and every refusal reads alike (case X04)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from adapters.canonical.parts import Text
from gateway.tools.base import ToolContext, ToolOutcome, ToolSpec
from gateway.tools.guard import UNREACHABLE, guard
from gateway.tools.http.door import Door
from gateway.tools.http.fetch import NAME, PARAMETERS, HttpGet


def text(outcome: ToolOutcome) -> str:
    (part,) = outcome.content
    assert isinstance(part, Text)
    return part.text


@pytest.fixture
async def get(site: Any, names: Any) -> AsyncIterator[HttpGet]:
    """May fetch ``public.test``, which the operator listed with its address, and nothing else
    that is inside."""
    # The site stands for the internet here: 127.0.0.1 itself is listed, 127.0.0.2 is "inside".
    names.answers = {
        "public.test": [["127.0.0.1"]],
        "rebind.test": [["127.0.0.1"], ["127.0.0.2"]],
        "inside.test": [["127.0.0.2"]],
        "localhost.localdomain": [["127.0.0.2"]],
        "mixed.test": [["127.0.0.1", "127.0.0.2"]],
    }
    port = site.port
    watch = guard(["127.0.0.1"], [f"*:{port}", "*"], names)
    door = Door(watch)
    yield HttpGet(ToolSpec(name=NAME, parameters=PARAMETERS, kind="builtin"), watch, door)
    await door.close()


async def test_a_listed_page_is_fetched(site: Any, get: HttpGet, context: ToolContext) -> None:
    outcome = await get.call({"url": f"http://public.test:{site.port}/a?b=c#d"}, context)
    assert not outcome.is_error
    hit = site.hit
    assert (hit["method"], hit["target"]) == ("GET", "/a?b=c")
    assert hit["headers"]["host"] == f"public.test:{site.port}"
    assert not {"authorization", "cookie", "referer"} & set(hit["headers"])


URLS = [
    "http://169.254.169.254/latest/meta-data",
    "http://[::ffff:169.254.169.254]/",
    "http://2130706433/",
    "http://0177.0.0.1/",
    "http://0.0.0.0/",
    "http://localhost.localdomain:{port}/",
    "http://inside.test:{port}/",
    "http://mixed.test:{port}/",
    "http://127.0.0.2:{port}/",
    "http://unknown.test:{port}/",
    "http://[::1]:{port}/",
    "http://user:pw@10.0.0.1/",
    "http://user:pw@public.test:{port}/",
    "http://public.test:22/",
    "file:///etc/passwd",
    "ftp://h/",
    "data:image/png;base64,AAAA",
    "http://public.test:{port}\\@127.0.0.2/",
    "",
    "\ud800",
]


@pytest.mark.parametrize("url", URLS)
async def test_the_way_inside_is_closed(
    site: Any, get: HttpGet, context: ToolContext, url: str
) -> None:
    outcome = await get.call({"url": url.replace("{port}", str(site.port))}, context)
    assert (outcome.is_error, text(outcome)) == (True, UNREACHABLE)
    assert not site.hits


async def test_a_name_that_rebinds_is_refused(
    site: Any, get: HttpGet, context: ToolContext
) -> None:
    url = {"url": f"http://rebind.test:{site.port}/"}
    assert not (await get.call(url, context)).is_error
    assert text(await get.call(url, context)) == UNREACHABLE
    assert len(site.hits) == 1


async def test_a_redirect_inside_is_not_followed(
    site: Any, get: HttpGet, context: ToolContext
) -> None:
    async def redirect(request: web.Request) -> web.Response:
        location = f"http://127.0.0.1:{site.port}/inside"
        return web.Response(status=302, headers={"Location": location}, text="moved")

    site.answer = redirect
    outcome = await get.call({"url": f"http://public.test:{site.port}/"}, context)
    assert (outcome.is_error, text(outcome)) == (True, UNREACHABLE)
    assert len(site.hits) == 1


async def test_a_host_that_is_not_listed_is_refused(
    site: Any, names: Any, context: ToolContext
) -> None:
    names.answers = {"public.test": [["127.0.0.1"]], "other.test": [["127.0.0.1"]]}
    watch = guard(["127.0.0.1"], [f"public.test:{site.port}"], names)
    door = Door(watch)
    tool = HttpGet(ToolSpec(name=NAME), watch, door)
    assert not (await tool.call({"url": f"http://public.test:{site.port}/"}, context)).is_error
    other = await tool.call({"url": f"http://other.test:{site.port}/"}, context)
    assert text(other) == UNREACHABLE
    assert len(site.hits) == 1
    await door.close()


async def test_no_connection_is_shared_between_names(
    site: Any, names: Any, context: ToolContext
) -> None:
    """A kept connection would be found by its address, whichever name it was opened for."""
    names.answers = {"a.test": [["127.0.0.1"]], "b.test": [["127.0.0.1"]]}
    peers = []

    async def peer(request: web.Request) -> web.Response:
        assert request.transport is not None
        peers.append(request.transport.get_extra_info("peername"))
        return web.Response(text="x")

    site.answer = peer
    watch = guard(["127.0.0.1"], [f"*:{site.port}"], names)
    door = Door(watch)
    tool = HttpGet(ToolSpec(name=NAME), watch, door)
    for host in ("a.test", "b.test"):
        await tool.call({"url": f"http://{host}:{site.port}/"}, context)
    assert len(set(peers)) == 2
    await door.close()
