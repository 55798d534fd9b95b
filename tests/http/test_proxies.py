"""Behind a proxy: a real nginx that buffers, a root path, forwarded addresses."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.harness import KEY, Harness, alias, gateway
from tests.ports import reserved_port

NGINX = """
worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass {upstream}; proxy_http_version {version}; }}
  }}
}}
"""
"""nginx as it comes: ``proxy_buffering`` is on unless the answer says otherwise."""


@contextlib.asynccontextmanager
async def nginx(folder: Path, upstream: str, version: str) -> AsyncIterator[str]:
    """A buffering nginx in front of ``upstream``; its URL. Unless told otherwise, all but the
    newest speak version 1.0 of HTTP to what is behind them."""
    conf = folder / "nginx.conf"
    start = ["nginx", "-e", str(folder / "e.log"), "-c", str(conf)]
    with reserved_port() as port:
        conf.write_text(NGINX.format(folder=folder, port=port, upstream=upstream, version=version))
        process = subprocess.Popen(start)
        try:
            for _ in range(200):
                with contextlib.suppress(OSError):
                    socket.create_connection(("127.0.0.1", port), 0.2).close()
                    break
                await asyncio.sleep(0.05)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(10)


@pytest.mark.all
@pytest.mark.parametrize("version", ["1.0", "1.1"])
async def test_a_buffering_proxy_lets_the_stream_through(tmp_path: Path, version: str) -> None:
    slow = alias("slow", ("openai", "paced-20-100"))
    async with gateway(tmp_path, slow) as g, nginx(tmp_path, g.url, version) as url:
        body = {"model": "slow", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
        headers = {
            "authorization": f"Bearer {KEY}",
            "content-type": "application/json",
            "accept-encoding": "gzip",
        }
        arrivals = []
        async with g.http.post(
            url + "/v1/chat/completions", data=json.dumps(body), headers=headers
        ) as reply:
            async for chunk in reply.content.iter_any():
                arrivals.append((time.monotonic(), chunk))
        assert b"[DONE]" in arrivals[-1][1]
        assert len(arrivals) > 10, "it came in pieces"
        assert arrivals[-1][0] - arrivals[0][0] > 1.0, "and as it was made"


CONFIG = """
[server]
root_path = "/llm"
forwarded_allow_ips = ["127.0.0.1"]
[store]
url = "sqlite:///gateway.db"
[providers.openai]
dialect = "openai-responses"
base_url = "{url}/v1"
api_key = "${KEY_OPENAI}"
[models.m]
targets = [{ provider = "openai", model = "gpt-5.2" }]
[[keys]]
name = "caller"
key = "${CALLER}"
"""


@pytest.fixture
async def rooted(tmp_path: Path) -> AsyncIterator[Harness]:
    """A gateway that lives under a path of a bigger site."""
    async with gateway(tmp_path, config=CONFIG) as running:
        yield running


@pytest.mark.parametrize("prefix", ["/llm", ""])
async def test_the_root_path_is_taken_off(rooted: Harness, prefix: str) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    assert (await rooted.post(f"{prefix}/v1/chat/completions", body)).status == 200
    assert (await rooted.get(f"{prefix}/v1/models", key=KEY)).status == 200
