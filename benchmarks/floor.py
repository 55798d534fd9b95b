"""The floor: a bare relay on the same server and the same HTTP client as the gateway.

No parsing, no keys, no ledger: what any Python gateway on these libraries must cost.
"""

from __future__ import annotations

import sys

import aiohttp
import uvicorn

from benchmarks.mock import Receive, Scope, Send

SESSION: list[aiohttp.ClientSession] = []
UPSTREAM = sys.argv[2] if len(sys.argv) > 2 else ""


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Pass one request on, and its answer back as it comes."""
    if not SESSION:
        SESSION.append(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
    body = b""
    more = True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    headers = {"content-type": "application/json", "authorization": "Bearer upstream"}
    async with SESSION[0].post(UPSTREAM + scope["path"], data=body, headers=headers) as reply:
        kind = reply.headers["content-type"].encode()
        await send(
            {
                "type": "http.response.start",
                "status": reply.status,
                "headers": [(b"content-type", kind)],
            }
        )
        async for chunk in reply.content.iter_any():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


if __name__ == "__main__":
    uvicorn.run(
        app,
        port=int(sys.argv[1]),
        log_level="error",
        access_log=False,
        lifespan="off",
        backlog=4096,
        timeout_graceful_shutdown=1,
    )
