"""A head that comes again is not parsed again, and nobody can tell: what is served is the same, at
whatever places the bytes are cut, and nothing of a key is kept."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import pytest
import uvicorn

from gateway.http.heads import BoundedHeads
from gateway.http.known import CREDENTIALS, LONGEST, MOST, MOST_SEEN, Known, KnownHeads, whole
from gateway.http.line import line_of
from gateway.http.server import listening
from tests.harness import ADMIN, KEY, Harness
from tests.raw import CHAT, Wire, asking, dialled, post

NOT_TOLD = CREDENTIALS | {b"content-length"}


class Echo:
    """Tells each request as it was understood; ``again`` counts those whose head was known."""

    def __init__(self) -> None:
        self.again = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        line = line_of(scope)
        assert line is not None
        if line.known is not None:
            self.again += line.known.door is not None
            line.keep(line.known, self)
        body, more = b"", True
        while more:
            message = await receive()
            more = message.get("more_body", False)
            body += message["body"]
        told = {
            name: scope[name] for name in sorted({*scope} - {"extensions", "headers", "client"})
        }
        headers = [header for header in scope["headers"] if header[0] not in NOT_TOLD]
        client = f"{scope['client'][0]} {line.keep_alive} {line.waiting_for_100_continue}"
        data = repr((told, headers, client, body)).encode()
        head = [(b"content-length", b"%d" % len(data))]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": data})


@contextlib.asynccontextmanager
async def echoing(app: Any, heads: KnownHeads, idle: Any = 5) -> AsyncIterator[str]:
    """``app`` behind the gateway's protocol, ``idle`` seconds of patience; its URL."""
    with listening("127.0.0.1", 0) as listener:
        http: Any = partial(BoundedHeads, heads=heads)
        config = uvicorn.Config(
            app, http=http, log_config=None, lifespan="off", timeout_keep_alive=idle
        )
        server = uvicorn.Server(config)
        server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign]
        task = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started:
            await asyncio.sleep(0.005)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        await task


class Forgetful(KnownHeads):
    """Knows nothing, so that everything is parsed."""

    def keep(self, known: Known, door: Any) -> None:
        pass


LINES = [
    "Host: x",
    "host: y:80",
    "User-Agent:   spaced out \t ",
    "X-Empty:",
    "x-twice: 1",
    "X-Twice: 2",
    "Authorization: Bearer some-key",
    "x-api-key: some-other-key",
    "Cookie: a=b",
    "x-latin: gr\xfc\xdfe",
    "Accept: */*",
    "Connection: keep-alive",
    "X-Content-Length: 7",
    "x-nested: a, Content-Length: 3",
]
ODD = ["Connection: close", "Expect: 100-continue", "Upgrade: h2c", "Transfer-Encoding: chunked"]
PATHS = ["/", "/v1/a", "/a%20b?c=%64&d", "/?", "*", "/ü".encode().decode("latin-1")]


def head(chance: random.Random, *more: str) -> str:
    """The line and headers of a request, its length as ``{size}``."""
    method = chance.choice(["POST", "POST", "PUT", "OPTIONS"])
    length = chance.choice(["Content-Length: {size}", "content-length: {size}"])
    lines = [*chance.sample(LINES, chance.randint(0, 6)), *more, length]
    chance.shuffle(lines)
    version = chance.choice(["1.1"] * 9 + ["1.0"])
    return "\r\n".join([f"{method} {chance.choice(PATHS)} HTTP/{version}", *lines, "", ""])


def request(head: str, body: bytes) -> bytes:
    return head.replace("{size}", str(len(body))).encode("latin-1") + body


async def answers(url: str, pieces: list[bytes], *, waits: bool) -> list[bytes]:
    """What a connection answers, until it ends; ``waits`` for each answer before the next piece."""
    told = []
    async with dialled(url) as wire:
        for piece in pieces:
            with contextlib.suppress(ConnectionError):
                await wire.send(piece)
            if waits:
                told.append(await _answer(wire))
            else:
                await asyncio.sleep(0.003)  # a packet of its own
        with contextlib.suppress(ConnectionError, OSError):
            wire.writer.write_eof()
            told.append(await wire.rest())
    return told


async def _answer(wire: Wire) -> bytes:
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while (got := await wire.head()).status < 200:
            pass
        return await wire.reader.readexactly(int(got.headers["content-length"]))
    return b""


async def test_what_is_known_is_served_as_what_is_parsed() -> None:
    """Calls one after the other, each whole: the ordinary client, and odd ones among them."""
    chance, knowing, parsing = random.Random(1), Echo(), Echo()
    async with echoing(knowing, KnownHeads()) as fast, echoing(parsing, Forgetful()) as slow:
        for turn in range(60):
            odd = chance.sample(ODD, 1) if turn % 4 == 0 else []
            heads = [head(chance, *odd), head(chance)]
            sent = [
                request(one, chance.randbytes(chance.choice([0, 1, 9, 10, 70000])))
                for one in [heads[1], *chance.choices(heads, k=7)]
            ]
            parsed = await answers(slow, sent, waits=True)
            ports = [url.rpartition(":")[2].encode() for url in (fast, slow)]
            for _ in range(3):
                known = await answers(fast, sent, waits=True)
                assert [told.replace(*ports) for told in known] == parsed, sent
    assert parsing.again == 0
    assert knowing.again > 150, "these were parsed, all the same"


async def test_cut_anywhere_it_is_what_is_parsed() -> None:
    chance, knowing = random.Random(2), Echo()
    async with echoing(knowing, KnownHeads()) as fast, echoing(Echo(), Forgetful()) as slow:
        for _ in range(40):
            one = head(chance).replace("HTTP/1.0", "HTTP/1.1")
            calls = [request(one, chance.randbytes(chance.randint(0, 40))) for _ in range(8)]
            data, ends = b"".join(calls), list(accumulate(map(len, calls)))
            cuts = chance.sample(range(ends[2], len(data)), 4)
            places = sorted({*ends[:3], *chance.sample(ends[:-1], 4), *cuts} - {0, len(data)})
            pieces = [data[a:b] for a, b in pairwise([0, *places, len(data)])]
            known = b"".join(await answers(fast, pieces, waits=False))
            parsed = b"".join(await answers(slow, pieces, waits=False))
            ports = [url.rpartition(":")[2].encode() for url in (fast, slow)]
            assert undated(known).replace(*ports) == undated(parsed), pieces
    assert knowing.again > 20


async def test_the_connection_of_a_known_call_is_not_idle() -> None:
    """Its answer may take longer than a connection may rest."""
    echo = Echo()

    async def late(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(float(scope["query_string"]))
        await echo(scope, receive, send)

    async with echoing(late, KnownHeads(), idle=0.3) as url, dialled(url) as wire:
        for pause in (0, 0, 0.8, 0.8, 0.8):
            await wire.send(post(b"{}", path=f"/?{pause}"))
            assert (await wire.answer()).status == 200
    assert echo.again == 1


def undated(told: bytes) -> list[bytes] | bytes:
    return b"\r\n".join(line for line in told.split(b"\r\n") if not line.startswith(b"date:"))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\nab",
        b"POST / HTTP/1.1\r\nContent-Length: 01\r\n\r\na",
        b"POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\na",
        b"POST / HTTP/1.1\r\nContent-Length: 1 \r\n\r\na",
        b"POST / HTTP/1.1\r\nContent-Length: \r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 0\r\nx: " + b"a" * LONGEST + b"\r\n\r\n",
    ],
)
def test_what_does_not_look_like_one_request_is_left_to_the_parser(data: bytes) -> None:
    assert whole(data) is None


def test_heads_are_told_apart_by_everything_but_their_length() -> None:
    first = b"POST / HTTP/1.1\r\nContent-Length: 1\r\nx: 2\r\n\r\na"
    again = b"POST / HTTP/1.1\r\nContent-Length: 10\r\nx: 2\r\n\r\n" + b"a" * 10
    assert whole(first)[0] == whole(again)[0]  # type: ignore[index]
    for place in range(first.index(b"\r\n\r\n")):
        changed = first[:place] + bytes([first[place] ^ 1]) + first[place + 1 :]
        other = whole(changed)
        assert other is None or other[0] != whole(first)[0], changed  # type: ignore[index]


def test_nothing_of_one_request_is_anothers() -> None:
    scope = {"headers": [(b"cookie", b"c")], "path": "/", "state": {"id": 1}, "client": ("x", 1)}
    known, state = Known(b"", {**scope, "extensions": {}, "server": None}), {"of": "the server"}
    first, second = (known.again(("s", 80), client, state) for client in (("a", 1), ("b", 2)))
    first["state"]["request_id"] = "req_1"
    assert (first["client"], second["client"]) == (("a", 1), ("b", 2))
    assert second == {**scope, "server": ("s", 80), "client": ("b", 2), "state": state}
    assert state == {"of": "the server"}


def test_no_more_is_known_than_is_bounded() -> None:
    heads = KnownHeads()
    for number in range(3 * MOST_SEEN):
        assert not heads.seen(b"%d" % number)
        assert heads.seen(b"%d" % number)
    assert sum(heads.seen(b"%d" % number) for number in range(2 * MOST_SEEN)) < MOST_SEEN
    for number in range(MOST + 5):
        heads.keep(Known(b"%d" % number, {"headers": [(b"a", b"b"), (b"cookie", b"c")]}), Echo())
    assert heads.find(b"4") is None
    newest = heads.find(b"%d" % (MOST + 4))
    assert newest is not None
    assert newest.headers == {"a": "b"}
    assert sum(heads.find(b"%d" % number) is not None for number in range(MOST + 5)) == MOST


# behind the gateway's doors


async def test_a_key_is_asked_for_each_time_and_kept_nowhere(g: Harness) -> None:
    made = await g.post("/admin/keys", {"name": "short", "project": "default"}, key=ADMIN)
    key, key_id = made.json()["key"], made.json()["id"]
    del made
    data = post(asking("m-chat")).replace(KEY.encode(), key.encode())
    async with dialled(g.url) as wire, dialled(g.url) as other:
        for _ in range(3):
            await wire.send(data)
            assert (await wire.answer()).status == 200
        await other.send(post(asking("m-chat"))), await other.answer()
        assert known() > 0
        (await g.http.delete(f"{g.url}/admin/keys/{key_id}", headers=ADMINS)).release()
        await wire.send(data)
        assert (await wire.answer()).error() == (401, "invalid_api_key")
        await wire.send(post(asking("m-chat")))
        assert (await wire.answer()).status == 200, "another key on the same connection"
        await wire.send(data)
        assert (await wire.answer()).error() == (401, "invalid_api_key")
        texts = [repr((one.scope, one.headers, one.found.headers)) for one in kept()]
    assert texts
    assert not [one for one in kept() if "extensions" in one.scope], "it holds a connection"
    assert not [text for text in texts if key in text or KEY in text]


ADMINS = {"authorization": f"Bearer {ADMIN}"}


def kept() -> list[Known]:
    return [one for one in gc.get_objects() if type(one) is Known and one.door is not None]


def known() -> int:
    return len(kept())


async def test_who_is_not_let_in_is_not_known(g: Harness) -> None:
    before = kept()
    async with dialled(g.url) as wire:
        for _ in range(4):
            await wire.send(post(asking("m-chat")).replace(KEY.encode(), b"nobody"))
            assert (await wire.answer()).error() == (401, "invalid_api_key")
    assert not [one for one in kept() if one not in before]


async def make_known(wire: Wire, data: bytes) -> None:
    """A connection's first call is always parsed, what comes twice after it is known."""
    before = kept()  # of other servers, maybe
    for _ in range(3):
        await wire.send(data)
        assert (await wire.answer()).status == 200
    assert [one for one in kept() if one not in before]


async def test_the_rest_of_a_refused_body_is_no_request_however_much_it_looks_like_one(
    g: Harness,
) -> None:
    data = post(asking("m-chat"))
    refused = post(data, "x-more: 1")[: -len(data)].replace(KEY.encode(), b"nobody")
    async with dialled(g.url) as wire:
        await make_known(wire, data)
        for _ in range(2):
            await wire.send(refused)
            assert (await wire.answer()).status == 401
            await wire.send(data)
            await asyncio.sleep(0.1)
        await wire.send(data)
        assert (await wire.answer()).status == 200
    assert len(g.simulator.log) == 4


@pytest.mark.parametrize("begun", ["GET /nothing HTTP/1.1\r\nHost: x\r\nx-more: ", "GET /"])
async def test_what_goes_on_with_a_head_that_was_begun_is_no_request(
    g: Harness, begun: str
) -> None:
    """However much it looks like one: else two parties on the way would see other requests."""
    data = post(asking("m-chat"))
    async with dialled(g.url) as wire:
        await make_known(wire, data)
        await wire.send(begun.encode(), data)
        assert (await wire.answer()).status != 200
    assert len(g.simulator.log) == 3


@pytest.mark.parametrize(("headers", "version"), [(["Connection: close"], "1.1"), ([], "1.0")])
async def test_a_connection_ends_where_its_caller_says_so_each_time(
    g: Harness, headers: list[str], version: str
) -> None:
    last = post(asking("m-chat"), *headers, version=version)
    for _ in range(5):
        async with dialled(g.url) as wire:
            await wire.send(post(asking("m-chat")))
            assert (await wire.answer()).status == 200
            await wire.send(last)
            answer = await wire.answer()
            assert (answer.status, answer.headers["connection"]) == (200, "close")
            assert await wire.rest() == b""


async def test_whether_a_page_may_read_is_asked_each_time(g: Harness) -> None:
    async with dialled(g.url) as wire:
        for allowed in ("https://page.example", None, "https://page.example"):
            cors = () if allowed is None else (allowed,)
            server = replace(g.state.snapshot.server, cors=cors)
            snapshot = replace(g.state.snapshot, server=server)
            g.state.runtime = replace(g.state.runtime, snapshot=snapshot)
            for _ in range(2):
                await wire.send(post(asking("m-chat"), "Origin: https://page.example"))
                answer = await wire.answer()
                assert answer.headers.get("access-control-allow-origin") == allowed


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_headers_mean_the_same_when_they_come_again(g: Harness, stream: bool) -> None:
    """The caller's words, the page of a browser, a key for idempotency: each call as the first."""
    ways = [
        ("x-gateway-structured: neither",),
        ("Origin: https://page.example",),
        ("traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",),
        ("Idempotency-Key: one",),
        ("content-encoding: gzip",),
        (),
    ]
    async with dialled(g.url) as wire:
        for headers in ways:
            told = []
            for _ in range(3):
                await wire.send(post(asking("m-chat", stream=stream), *headers))
                answer = await wire.answer()
                own = {"x-request-id", "date", "idempotent-replayed", "x-gateway-original-request"}
                names = {name: text for name, text in answer.headers.items() if name not in own}
                told.append((answer.status, names.keys(), _said(answer.body)))
            assert told == [told[0]] * 3, headers
    traced = [e for e in g.simulator.log if "traceparent" in e.headers]
    assert len(traced) == 3


def _said(body: bytes) -> Any:
    try:
        told = json.loads(body)
    except ValueError:
        return b"[DONE]" in body
    return told.get("error", {}).get("param"), "choices" in told


async def test_bodies_of_all_sizes_one_after_the_other(g: Harness) -> None:
    async with dialled(g.url) as wire:
        for size in (1, 10, 100_000, 9, 300_000, 11, 1):
            await wire.send(post(asking("m-chat", text="a" * size), path=CHAT))
            assert (await wire.answer()).status == 200
    assert [len(seen.body["messages"][0]["content"]) for seen in g.simulator.log] == [
        1, 10, 100_000, 9, 300_000, 11, 1,
    ]  # fmt: skip
