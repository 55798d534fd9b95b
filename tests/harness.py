"""A whole gateway over a whole simulator, in this event loop, on real loopback sockets.

``async with gateway(...) as g:`` gives the running :class:`Harness`: ``g.url`` for SDKs,
``g.simulator.log`` for what the provider saw, ``g.state`` for the books.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import uvicorn

from adapters import simulator as sim
from gateway.app import running
from gateway.http.heads import BoundedHeads
from gateway.http.known import KnownHeads
from gateway.services.state import State
from gateway.settings.load import Overrides, load

KEY = "test-caller-key"
ADMIN = "test-admin-key"

ENVIRONMENT = {
    "CALLER": KEY,
    "ADMIN": ADMIN,
    "KEY_OPENAI": "sk-provider-openai",
    "KEY_ANTHROPIC": "sk-provider-anthropic",
    "KEY_CHAT": "sk-provider-chat",
}

PROVIDERS = """
[providers.openai]
dialect = "openai-responses"
base_url = "{url}/v1"
api_key = "${KEY_OPENAI}"

[providers.anthropic]
dialect = "anthropic-messages"
base_url = "{url}"
api_key = "${KEY_ANTHROPIC}"

[providers.chat]
dialect = "openai-chat"
base_url = "{url}/v1"
api_key = "${KEY_CHAT}"
"""

KEYS = """
[[keys]]
name = "caller"
key = "${CALLER}"

[[keys]]
name = "admin"
key = "${ADMIN}"
role = "admin"
"""


def alias(name: str, *targets: tuple[str, str], **settings: Any) -> str:
    """The TOML of an alias: ``alias("m", ("openai", "gpt-5.2"), retries=0)``."""
    rows = ", ".join(f'{{ provider = "{p}", model = "{m}" }}' for p, m in targets)
    lines = [f'[models."{name}"]', f"targets = [{rows}]"]
    lines += [f"{key} = {_toml(value)}" for key, value in settings.items()]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{k} = {_toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return repr(value) if isinstance(value, int | float) else f'"{value}"'


def aliases(extra: Sequence[str] = ()) -> str:
    """One alias a dialect, answering as the simulator's plain model."""
    plain = [
        alias("m-openai", ("openai", "gpt-5.2")),
        alias("m-claude", ("anthropic", "claude-sonnet-4-6")),
        alias("m-chat", ("chat", "some-model")),
    ]
    return "\n".join([*plain, *extra])


@dataclass(slots=True)
class Harness:
    """A running gateway."""

    url: str
    state: State
    simulator: sim.Simulator
    http: aiohttp.ClientSession

    async def post(
        self, path: str, body: Any, *, key: str | None = KEY, headers: Mapping[str, str] = {}
    ) -> Answer:
        """POST JSON (or bytes as they are) and read the whole answer."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        own = {"content-type": "application/json", **headers}
        if key is not None:
            own["authorization"] = f"Bearer {key}"
        async with self.http.post(self.url + path, headers=own, data=io.BytesIO(raw)) as reply:
            return Answer(reply.status, dict(reply.headers), await reply.read())

    async def get(self, path: str, *, key: str | None = ADMIN) -> Answer:
        """GET and read the whole answer."""
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        async with self.http.get(self.url + path, headers=headers) as reply:
            return Answer(reply.status, dict(reply.headers), await reply.read())

    async def chat(self, model: str, text: str = "hi", **fields: Any) -> Answer:
        """One chat completion of one user message."""
        body = {"model": model, "messages": [{"role": "user", "content": text}], **fields}
        return await self.post("/v1/chat/completions", body)

    async def explain(self, answer: Answer) -> dict[str, Any]:
        """The ledger's account of an answered call."""
        found = await self.get(f"/admin/requests/{answer.headers['x-request-id']}")
        assert found.status == 200, found.body
        return found.json()


@dataclass(slots=True)
class Answer:
    """A whole HTTP answer; header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    def __post_init__(self) -> None:
        self.headers = {name.lower(): value for name, value in self.headers.items()}

    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)

    def data(self) -> list[Any]:
        """The ``data`` of each SSE event, parsed; ``[DONE]`` as text."""
        found = []
        for block in self.body.decode().split("\n\n"):
            lines = [x.removeprefix("data: ") for x in block.split("\n") if x.startswith("data:")]
            if lines:
                text = "\n".join(lines)
                found.append(text if text == "[DONE]" else json.loads(text))
        return found


@contextlib.asynccontextmanager
async def served(app: Any) -> AsyncIterator[str]:
    """``app`` under a real uvicorn with the gateway's protocol on a free loopback port; its URL."""
    # asyncio switches Nagle's delays off only where the protocol is named
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(
        app,
        http=partial(BoundedHeads, heads=KnownHeads()),  # type: ignore[arg-type]
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign]
    task = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        await asyncio.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
        listener.close()


@contextlib.asynccontextmanager
async def gateway(
    folder: Path, *extra: str, config: str | None = None, store: str | None = None
) -> AsyncIterator[Harness]:
    """A gateway whose files live in ``folder``.

    :param extra: TOML of further aliases or tables, after the plain ones.
    :param config: the whole TOML instead; ``{url}`` is the simulator's.
    :param store: the store's URL, default a SQLite file in ``folder``.
    """
    async with sim.running() as provider:
        text = config
        if text is None:
            place = store if store is not None else f"sqlite:///{folder / 'gateway.db'}"
            text = f'[store]\nurl = "{place}"\n' + PROVIDERS + aliases(extra) + KEYS
        path = folder / "gateway.toml"
        path.write_text(text.replace("{url}", provider.url))

        def read() -> Any:
            return load(path, ENVIRONMENT, Overrides())

        async with (
            running(read(), read) as (app, state),
            served(app) as url,
            aiohttp.ClientSession() as http,
        ):
            yield Harness(url, state, provider, http)
