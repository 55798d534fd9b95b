"""HTTP endpoints as tools, against a real server."""

from __future__ import annotations

import asyncio
import dataclasses
import gzip
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web

from adapters.canonical.parts import Text
from gateway.tools.base import ToolContext, ToolOutcome, ToolSpec
from gateway.tools.guard import UNREACHABLE, guard
from gateway.tools.http.door import Door
from gateway.tools.http.endpoint import NO_ANSWER, HttpTool, RequestTemplate
from gateway.tools.http.template import body_template, pieces, url_template

Make = Callable[..., HttpTool]


@pytest.fixture
def doors() -> list[Door]:
    """Those of the tools that were made."""
    return []


@pytest.fixture
async def make(site: Any, doors: list[Door]) -> AsyncIterator[Make]:
    """Tools that may reach the site."""

    def make(
        path: str = "/",
        *,
        method: str = "GET",
        headers: dict[str, str] | None = None,
        body: Any = None,
        host: str | None = None,
        allow: tuple[str, ...] = ("127.0.0.1",),
        resolver: Any = None,
        ca_file: str | None = None,
        **spec: Any,
    ) -> HttpTool:
        own = {} if resolver is None else {"resolver": resolver}
        doors.append(Door(guard(allow, None, **own), keep=2, ca_file=ca_file))
        base = f"http://127.0.0.1:{site.port}" if host is None else host
        template = RequestTemplate(
            method,
            url_template(base + path),
            {name: pieces(value) for name, value in (headers or {}).items()},
            None if body is None else body_template(body),
        )
        return HttpTool(ToolSpec(name="made", kind="http", **spec), template, doors[-1])

    yield make
    for door in doors:
        await door.close()


def text(outcome: ToolOutcome) -> str:
    (part,) = outcome.content
    assert isinstance(part, Text)
    return part.text


def answering(response: Callable[[], web.StreamResponse]) -> Any:
    async def answer(request: web.Request) -> web.StreamResponse:
        return response()

    return answer


async def test_a_call_is_sent_as_the_template_says(
    site: Any, make: Make, context: ToolContext
) -> None:
    tool = make(
        "/customers/{number}?full={full}",
        method="POST",
        headers={"Authorization": "Bearer secret", "X-Team": "{team}"},
        body={"name": "{name}", "tags": "{tags}"},
    )
    arguments = {"number": "a/b", "full": True, "team": "red", "name": "x", "tags": [1, None]}
    outcome = await tool.call(arguments, context)
    assert not outcome.is_error
    assert outcome.structured == {"ok": True}
    assert text(outcome) == '{"ok": true}'
    hit = site.hit
    assert (hit["method"], hit["target"]) == ("POST", "/customers/a%2Fb?full=true")
    assert hit["json"] == {"name": "x", "tags": [1, None]}
    assert hit["headers"]["authorization"] == "Bearer secret"
    assert hit["headers"]["x-team"] == "red"
    assert hit["headers"]["content-type"] == "application/json"
    assert hit["headers"]["idempotency-key"] == "run-1:call-1"
    assert hit["headers"]["accept-encoding"] == "identity"
    assert hit["headers"]["host"] == f"127.0.0.1:{site.port}"


@pytest.mark.parametrize("key", ["run-1:é", "run-1:a\r\nX-Evil: 1", "run-1:" + "x" * 300])
async def test_a_call_of_any_name_has_a_key_that_stays_the_same(
    site: Any, make: Make, context: ToolContext, key: str
) -> None:
    named = dataclasses.replace(context, idempotency_key=key)
    for _ in range(2):
        assert not (await make("/customers").call({}, named)).is_error
    first, second = (hit["headers"] for hit in site.hits)
    assert first["idempotency-key"] == second["idempotency-key"]
    assert len(first["idempotency-key"]) == 64
    assert "x-evil" not in first


async def test_a_bad_argument_sends_nothing(site: Any, make: Make, context: ToolContext) -> None:
    outcome = await make("/customers/{number}").call({"number": ".."}, context)
    assert outcome.is_error
    assert "number" in text(outcome)
    assert not site.hits


async def test_no_cookie_is_kept(site: Any, make: Make, context: ToolContext) -> None:
    def with_cookie() -> web.Response:
        response = web.json_response({})
        response.set_cookie("session", "of somebody else")
        return response

    site.answer = answering(with_cookie)
    tool = make()
    await tool.call({}, context)
    await tool.call({}, context)
    assert "cookie" not in site.hits[1]["headers"]


async def test_no_proxy_of_the_environment_is_used(
    site: Any, make: Make, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert not (await make().call({}, context)).is_error


@pytest.mark.parametrize(
    ("response", "is_error", "said"),
    [
        (lambda: web.Response(status=404, text="no customer"), True, "HTTP 404\nno customer"),
        (lambda: web.Response(status=500), True, "HTTP 500, no content"),
        (lambda: web.Response(status=204), False, "HTTP 204, no content"),
        (lambda: web.Response(text="plain"), False, "plain"),
        (lambda: web.Response(body=b"gr\xfcn",
                              headers={"Content-Type": "text/plain; charset=latin-1"}),
         False, "grün"),
        (lambda: web.Response(body=b"\xff", headers={"Content-Type": "text/plain; charset=zip"}),
         False, "�"),
        (lambda: web.Response(body=b"\x89PNG", content_type="image/png"), True,
         "HTTP 200: the answer is image/png, which is no text."),
        (lambda: web.Response(body=b"{broken", content_type="application/json"), False, "{broken"),
        (lambda: web.Response(body=b'{"a":1}', content_type="application/problem+json"), False,
         '{"a":1}'),
    ],
)  # fmt: skip
async def test_answers(
    site: Any, make: Make, context: ToolContext, response: Any, is_error: bool, said: str
) -> None:
    site.answer = answering(response)
    outcome = await make().call({}, context)
    assert (outcome.is_error, text(outcome)) == (is_error, said)


async def test_a_long_answer_is_cut_and_reading_stops(
    site: Any, make: Make, context: ToolContext
) -> None:
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        for _ in range(10_000):
            await response.write(b"x" * 10_000)
            sent += 10_000
        return response

    site.answer = endless
    outcome = await make(output_cap=1000).call({}, context)
    assert len(text(outcome)) <= 1000
    assert "were cut here" in text(outcome)
    assert text(outcome).endswith("[... the rest was not read ...]")
    assert sent < 20_000_000


async def test_a_compressed_answer_is_not_unpacked(
    site: Any, make: Make, context: ToolContext
) -> None:
    bomb = gzip.compress(b"\0" * 10_000_000)
    headers = {"Content-Encoding": "gzip", "Content-Type": "text/plain"}
    site.answer = answering(lambda: web.Response(body=bomb, headers=headers))
    outcome = await make().call({}, context)
    assert (outcome.is_error, text(outcome)) == (True, NO_ANSWER)


async def test_a_connection_that_breaks_leaves_the_effect_unknown(
    site: Any, make: Make, context: ToolContext
) -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    site.answer = cut
    outcome = await make(method="POST").call({}, context)
    assert (outcome.is_error, outcome.retryable, text(outcome)) == (True, False, NO_ANSWER)
    assert len(site.hits) == 1, "it may have had an effect and is not sent again"


async def test_nothing_listening_may_be_tried_again(make: Make, context: ToolContext) -> None:
    outcome = await make(host="http://127.0.0.1:9").call({}, context)
    assert (outcome.is_error, outcome.retryable, text(outcome)) == (True, True, UNREACHABLE)


async def test_a_redirect_is_not_followed(site: Any, make: Make, context: ToolContext) -> None:
    location = {"Location": f"http://127.0.0.1:{site.port}/inside"}
    site.answer = answering(lambda: web.Response(status=302, headers=location))
    outcome = await make().call({}, context)
    assert (outcome.is_error, text(outcome)) == (True, UNREACHABLE)
    assert len(site.hits) == 1


async def test_a_private_address_must_be_listed(
    site: Any, make: Make, context: ToolContext, caplog: pytest.LogCaptureFixture
) -> None:
    outcome = await make(allow=()).call({}, context)
    assert (outcome.is_error, outcome.retryable, text(outcome)) == (True, False, UNREACHABLE)
    assert not site.hits
    assert "allow_private" in caplog.text, "the operator is told what to change"


async def test_the_checked_address_is_the_one_connected_to(
    site: Any, make: Make, context: ToolContext, names: Any
) -> None:
    """A second look-up would lead elsewhere; there is none."""
    names.answers = {"crm.test": [["127.0.0.1"], ["10.255.255.1"]]}
    tool = make(host=f"http://crm.test:{site.port}", resolver=names)
    assert not (await tool.call({}, context)).is_error
    assert names.calls == ["crm.test"]
    assert site.hit["headers"]["host"] == f"crm.test:{site.port}"


async def test_a_name_that_changes_its_mind_is_refused_then(
    site: Any, make: Make, context: ToolContext, names: Any
) -> None:
    names.answers = {"crm.test": [["127.0.0.1"], ["10.0.0.1"]]}
    tool = make(host=f"http://crm.test:{site.port}", resolver=names)
    assert not (await tool.call({}, context)).is_error
    assert text(await tool.call({}, context)) == UNREACHABLE
    assert len(site.hits) == 1


async def test_the_next_address_is_tried_where_one_takes_no_connection(
    site: Any, make: Make, context: ToolContext, names: Any
) -> None:
    names.answers = {"crm.test": [["127.0.0.2", "127.0.0.1"]]}
    tool = make(
        host=f"http://crm.test:{site.port}", resolver=names, allow=("127.0.0.0/8",), method="POST",
        body={"a": "{a}"},
    )  # fmt: skip
    outcome = await tool.call({"a": 1}, context)
    assert not outcome.is_error
    assert site.hit["json"] == {"a": 1}


async def test_tls_checks_the_name_of_the_url(
    secure_site: Any, make: Make, context: ToolContext, names: Any, ca_file: str
) -> None:
    names.answers = {"localhost": [["127.0.0.1"]], "other.test": [["127.0.0.1"]]}
    for host, reached in (("localhost", True), ("other.test", False)):
        base = f"https://{host}:{secure_site.port}"
        tool = make(host=base, resolver=names, ca_file=ca_file)
        assert (await tool.call({}, context)).is_error is not reached
    assert secure_site.hit["headers"]["host"] == f"localhost:{secure_site.port}"
    untrusting = make(host=f"https://localhost:{secure_site.port}", resolver=names)
    assert (await untrusting.call({}, context)).is_error


async def test_cancelling_closes_the_connection(
    site: Any, make: Make, context: ToolContext
) -> None:
    gone = asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            gone.set()
            raise
        return web.Response()

    site.answer = slow
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(make().call({}, context), 0.3)
    await asyncio.wait_for(gone.wait(), 5)


async def test_a_door_is_busy_while_an_answer_is_waited_for(
    site: Any, make: Make, doors: list[Door], context: ToolContext
) -> None:
    """A reload that takes the tool away closes it only then."""
    arrived, go = asyncio.Event(), asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        arrived.set()
        await go.wait()
        return web.Response(text="done")

    site.answer = slow
    tool = make()
    (door,) = doors
    assert not door.busy
    async with asyncio.TaskGroup() as group:
        call = group.create_task(tool.call({}, context))
        await arrived.wait()
        assert door.busy
        go.set()
    assert not call.result().is_error
    assert not door.busy
