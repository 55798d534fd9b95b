"""What bad input gets: the right status, the envelope, and nothing reaches a provider."""

from __future__ import annotations

import gzip
import json
import zlib

import pytest
import zstandard

from tests.harness import ADMIN, KEY, Harness

HI = {"model": "m-openai", "messages": [{"role": "user", "content": "hi"}]}
DEEP = b'{"model":"m-openai","messages":' + b"[" * 5000 + b"]" * 5000 + b"}"

BAD = [
    ("no JSON", b"{", 400, None),
    ("no object", b"[]", 400, None),
    ("empty", b"", 400, None),
    ("no messages", b'{"model":"m-openai"}', 400, "messages"),
    ("wrong type", b'{"model":"m-openai","messages":"hi"}', 400, "messages"),
    ("wrong role", b'{"model":"m-openai","messages":[{"role":"x","content":"a"}]}', 400, None),
    ("unknown alias", b'{"model":"nope","messages":[{"role":"user","content":"a"}]}', 404, "model"),
    ("too deep", DEEP, 400, None),
    (
        "lone surrogate",
        b'{"model":"m-openai","messages":[{"role":"user","content":"\\ud800"}]}',
        400,
        None,
    ),
    ("no UTF-8", b'{"model":"m-openai","messages":[{"role":"user","content":"\xff"}]}', 400, None),
    (
        "two keys alike",
        b'{"model":"m-openai","model":"m-claude","messages":[{"role":"user","content":"a"}]}',
        400,
        None,
    ),
    ("n", json.dumps({**HI, "n": 0}).encode(), 400, "n"),
    ("zero tokens", json.dumps({**HI, "max_tokens": 0}).encode(), 400, "max_tokens"),
    ("too large", json.dumps({**HI, "user": "x" * 1_048_600}).encode(), 413, None),
]


@pytest.mark.parametrize(("body", "status", "param"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
async def test_bad_bodies(g: Harness, body: bytes, status: int, param: str | None) -> None:
    answer = await g.post("/v1/chat/completions", body)
    assert answer.status == status, answer.body
    error = answer.json()["error"]
    assert set(error) >= {"message", "type", "param", "code"}
    if param is not None:
        assert error["param"] == param
    assert answer.headers["x-request-id"].startswith("req_")
    assert len(answer.body) < 8_000
    assert len(g.simulator.log) == 0
    assert (await g.chat("m-openai")).status == 200, "the process stays up"


@pytest.mark.parametrize(
    ("encoding", "squeeze"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("zstd", lambda data: zstandard.ZstdCompressor().compress(data)),
    ],
)
async def test_compressed_bodies(g: Harness, encoding: str, squeeze) -> None:
    headers = {"content-encoding": encoding}
    body = json.dumps(HI).encode()
    good = await g.post("/v1/chat/completions", squeeze(body), headers=headers)
    assert good.status == 200, good.body
    bomb = squeeze(b" " * 50_000_000 + body)
    assert len(bomb) < 200_000
    burst = await g.post("/v1/chat/completions", bomb, headers=headers)
    assert burst.status == 413
    broken = await g.post("/v1/chat/completions", squeeze(body)[:-8], headers=headers)
    assert broken.status == 400
    more = await g.post("/v1/chat/completions", squeeze(body) + b"{}", headers=headers)
    assert more.status == 400
    assert len(g.simulator.log) == 1


async def test_an_unknown_encoding(g: Harness) -> None:
    answer = await g.post("/v1/chat/completions", b"x", headers={"content-encoding": "br"})
    assert answer.status == 400
    assert "gzip" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("GET", "/v1/chat/completions", 405, "method_not_allowed"),
        ("PUT", "/admin/keys", 405, "method_not_allowed"),
    ],
)
async def test_wrong_paths_and_methods(
    g: Harness, method: str, path: str, status: int, code: str
) -> None:
    async with g.http.request(method, g.url + path) as reply:
        assert reply.status == status
        assert (await reply.json())["error"]["code"] == code
        assert "x-request-id" in reply.headers


@pytest.mark.parametrize(
    ("path", "taken"),
    [
        ("/v1/chat/completions", "POST"),
        ("/v1/conversations/x", "DELETE, GET, POST"),
        ("/admin/keys", "GET, POST"),
        ("/agents/x", "DELETE, GET, PUT"),
        ("/healthz", "GET, HEAD"),
        ("/", "GET, HEAD"),
        ("/runs/x", "DELETE, GET"),
        ("/v1/models/team/gpt:4.1", "GET"),
    ],
)
async def test_a_wrong_method_is_told_all_that_are_right(g: Harness, path: str, taken: str) -> None:
    async with g.http.request("PATCH", g.url + path) as reply:
        assert (reply.status, reply.headers["allow"]) == (405, taken)
        assert f"try {taken}." in (await reply.json())["error"]["message"]


async def test_a_browser_is_told_where_to_go(g: Harness) -> None:
    async with g.http.get(g.url + "/") as reply:
        assert reply.status == 200
        assert "/v1/chat/completions" in (await reply.json())["calls"]
    async with g.http.get(g.url + "/v1/chat/completions") as reply:
        message = (await reply.json())["error"]["message"]
        assert message == "This path does not take GET; try POST."


@pytest.mark.parametrize(
    ("path", "kind"), [("/v1/chat/completions", "server_error"), ("/v1/messages", "api_error")]
)
async def test_an_accident_is_told_in_the_envelope(
    g: Harness, monkeypatch: pytest.MonkeyPatch, path: str, kind: str
) -> None:
    def broken(*_: object) -> bytes:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr("gateway.http.exchange.Exchange.whole", broken)
    answer = await g.post(path, b"{}")
    assert answer.status == 500
    assert answer.json()["error"]["type"] == kind
    assert answer.headers["x-request-id"].startswith("req_")
    assert b"secret" not in answer.body


@pytest.mark.parametrize(
    ("path", "field", "body"),
    [
        ("/v1/chat/completions", "max_tokens", HI),
        ("/v1/chat/completions", "max_completion_tokens", HI),
        ("/v1/responses", "max_output_tokens", {"model": "m-chat", "input": "hi"}),
        ("/v1/messages", "max_tokens", HI),
        ("/v1/completions", "max_tokens", {"model": "m-chat", "prompt": "hi"}),
    ],
)
async def test_more_tokens_than_the_books_can_count(
    g: Harness, path: str, field: str, body: dict[str, object]
) -> None:
    """What can't be reserved is the caller's mistake, not an outage of the store."""
    answer = await g.post(path, json.dumps({**body, field: 2**63}).encode())
    assert answer.status == 400, answer.body
    assert field in answer.json()["error"]["message"]
    assert len(g.simulator.log) == 0
    most = await g.post(path, json.dumps({**body, field: 2**31 - 1}).encode())
    assert most.status in (200, 400)


async def test_keys(g: Harness) -> None:
    body = json.dumps(HI).encode()
    assert (await g.post("/v1/chat/completions", body, key=None)).status == 401
    assert (await g.post("/v1/chat/completions", body, key="wrong")).status == 401
    other = {"x-api-key": "test-caller-key"}
    assert (await g.post("/v1/chat/completions", body, key=None, headers=other)).status == 200
    assert len(g.simulator.log) == 1


async def test_alias_names_with_slash_dot_and_colon(g: Harness) -> None:
    assert (await g.chat("team/gpt:4.1")).status == 200
    assert (await g.get("/v1/models/team/gpt:4.1")).json()["id"] == "team/gpt:4.1"


async def test_strict_refuses_what_would_be_dropped(g: Harness) -> None:
    body = json.dumps({**HI, "seed": 7}).encode()
    loose = await g.post("/v1/chat/completions", body)
    assert loose.status == 200
    assert "seed" in loose.headers["x-gateway-dropped"]
    strict = await g.post("/v1/chat/completions", body, headers={"x-gateway-strict": "true"})
    assert strict.status == 400
    assert strict.json()["error"]["param"] == "seed"
    assert len(g.simulator.log) == 1


@pytest.mark.parametrize(
    ("path", "body", "says", "param"),
    [
        ("keys", {"nme": "x"}, "name is required; nme is not known here.", "name"),
        ("keys", {"name": "x", "role": "root"}, "role must be 'caller' or 'admin'.", "role"),
        ("keys", {"name": "x", "limits": {"rpm": -1}}, "limits.rpm must be", "limits.rpm"),
        ("keys", {"name": "x", "models": "smart"}, "models must be a list.", "models"),
        ("prompts", {"sytem": "x"}, "name is required", "name"),
    ],
)
async def test_an_operator_s_mistakes_are_told_in_the_same_words_as_a_caller_s(
    g: Harness, path: str, body: object, says: str, param: str
) -> None:
    answer = await g.post(f"/admin/{path}", body, key=ADMIN)
    assert answer.status == 400
    assert says in answer.json()["error"]["message"]
    assert answer.json()["error"]["param"] == param


@pytest.mark.parametrize(
    ("query", "says", "param"),
    [
        ("runs?limit=x", "limit must be an integer.", "limit"),
        ("runs?limit=1000", "limit must be less than or equal to 100.", "limit"),
        ("plans/x?version=a", "version must be an integer.", "version"),
        ("runs?limit=1&limit=2", "The query has limit more than once; it is read once.", "limit"),
        (
            "v1/responses/r?stream=false&stream=true",
            "The query has stream more than once; it is read once.",
            "stream",
        ),
    ],
)
async def test_a_query_is_told_in_the_same_words_as_a_body(
    g: Harness, query: str, says: str, param: str
) -> None:
    async with g.http.get(f"{g.url}/{query}", headers={"authorization": f"Bearer {KEY}"}) as reply:
        error = (await reply.json())["error"]
    assert (reply.status, error["message"], error["param"]) == (400, says, param)


async def test_a_period_that_ends_before_it_begins_is_a_mistake(g: Harness) -> None:
    answer = await g.get("/admin/usage?since=2026-12-02&until=2026-12-01")
    assert (answer.status, answer.json()["error"]["param"]) == (400, "until")
    assert (await g.get("/admin/usage?since=2026-12-01&until=2026-12-01")).status == 200


async def test_lists_in_a_query_may_repeat_their_name_and_strangers_are_asked_first(
    g: Harness,
) -> None:
    assert (await g.get("/v1/responses/r?include=a&include=b", key=KEY)).status == 404
    assert (await g.get("/v1/responses/r?include[]=a&include[]=b", key=KEY)).status == 404
    for path in ("/runs?limit=1&limit=2", "/runs/r/events?format=a&format=b"):
        assert (await g.get(path, key=None)).status == 401
    answer = await g.get("/runs/r/events?format=a&format=b", key=KEY)
    assert (answer.status, answer.json()["error"]["param"]) == (400, "format")
