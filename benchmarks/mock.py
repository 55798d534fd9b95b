"""A cheap upstream: pre-rendered answers in all three protocols, on bare ASGI.

The model's name chooses the answer: ``whole``, ``paced-N-MS`` or ``burst-N`` (N chunks).
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

MODEL = re.compile(rb'"model":\s*"(?:paced-(\d+)-(\d+)|burst-(\d+)|whole)')
WORD, WORDS = "word ", 40
"""What answers are made of, and how many of them a whole answer has."""

CHAT_WHOLE = (
    b'{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"whole",'
    b'"choices":[{"index":0,"message":{"role":"assistant","content":"'
    + WORD.encode()
    * WORDS
    + b'"},'
    b'"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":200,"completion_tokens":40,'
    b'"total_tokens":240}}'
)
RESPONSES_WHOLE = (
    b'{"id":"resp_1","object":"response","created_at":1700000000,"status":"completed",'
    b'"model":"whole","output":[{"type":"message","id":"msg_1","status":"completed",'
    b'"role":"assistant","content":[{"type":"output_text","text":"'
    + WORD.encode() * WORDS
    + b'","annotations":[]}]}],"usage":{"input_tokens":200,"output_tokens":40,"total_tokens":240}}'
)
MESSAGES_WHOLE = (
    b'{"id":"msg_1","type":"message","role":"assistant","model":"whole","content":[{"type":"text",'
    b'"text":"' + WORD.encode() * WORDS + b'"}],"stop_reason":"end_turn","stop_sequence":null,'
    b'"usage":{"input_tokens":200,"output_tokens":40}}'
)


def _event(name: str, data: str) -> bytes:
    return f"event: {name}\ndata: {data}\n\n".encode()


def _chat_chunk(delta: str, finish: str = "null") -> bytes:
    return (
        'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,'
        f'"model":"paced","choices":[{{"index":0,"delta":{delta},"finish_reason":{finish}}}]}}\n\n'
    ).encode()


STREAMS: dict[str, tuple[bytes, bytes, bytes]] = {
    "/v1/chat/completions": (
        _chat_chunk('{"role":"assistant","content":""}'),
        _chat_chunk('{"content":"word "}'),
        _chat_chunk("{}", '"stop"')
        + b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,'
        b'"model":"paced","choices":[],"usage":{"prompt_tokens":200,"completion_tokens":40,'
        b'"total_tokens":240}}\n\ndata: [DONE]\n\n',
    ),
    "/v1/responses": (
        _event(
            "response.created",
            '{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":'
            '"response","created_at":1700000000,"status":"in_progress","model":"paced","output":[]}}',
        )
        + _event(
            "response.output_item.added",
            '{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":'
            '{"type":"message","id":"msg_1","status":"in_progress","role":"assistant","content":[]}}',
        )
        + _event(
            "response.content_part.added",
            '{"type":"response.content_part.added","sequence_number":2,"output_index":0,'
            '"content_index":0,"item_id":"msg_1","part":{"type":"output_text","text":"",'
            '"annotations":[]}}',
        ),
        _event(
            "response.output_text.delta",
            '{"type":"response.output_text.delta","sequence_number":3,"output_index":0,'
            '"content_index":0,"item_id":"msg_1","delta":"word "}',
        ),
        _event(
            "response.completed",
            '{"type":"response.completed","sequence_number":9,"response":{"id":"resp_1","object":'
            '"response","created_at":1700000000,"status":"completed","model":"paced","output":[],'
            '"usage":{"input_tokens":200,"output_tokens":40,"total_tokens":240}}}',
        ),
    ),
    "/v1/messages": (
        _event(
            "message_start",
            '{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant",'
            '"model":"paced","content":[],"stop_reason":null,"stop_sequence":null,"usage":'
            '{"input_tokens":200,"output_tokens":1}}}',
        )
        + _event(
            "content_block_start",
            '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
        ),
        _event(
            "content_block_delta",
            '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"word "}}',
        ),
        _event("content_block_stop", '{"type":"content_block_stop","index":0}')
        + _event(
            "message_delta",
            '{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},'
            '"usage":{"output_tokens":40}}',
        )
        + _event("message_stop", '{"type":"message_stop"}'),
    ),
}
"""Opening, one delta, closing, by path."""

WHOLES = {
    "/v1/chat/completions": CHAT_WHOLE,
    "/v1/responses": RESPONSES_WHOLE,
    "/v1/messages": MESSAGES_WHOLE,
}


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """One answer."""
    body = b""
    more = True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    path = scope["path"]
    found = MODEL.search(body)
    chunks, pace, burst = (int(g) if g else 0 for g in found.groups()) if found else (0, 0, 0)
    if not chunks and not burst:
        await _whole(send, WHOLES[path])
        return
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-type", b"text/event-stream")],
        }
    )
    opening, delta, closing = STREAMS[path]
    await send({"type": "http.response.body", "body": opening, "more_body": True})
    for _ in range(chunks or burst):
        if pace:
            await asyncio.sleep(pace / 1000)
        await send({"type": "http.response.body", "body": delta, "more_body": True})
    await send({"type": "http.response.body", "body": closing, "more_body": False})


async def _whole(send: Send, body: bytes) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


if __name__ == "__main__":
    uvicorn.run(
        app,
        port=int(sys.argv[1]),
        log_level="error",
        access_log=False,
        lifespan="off",
        backlog=4096,
        timeout_keep_alive=600,  # a relay that waits for its turn finds its connections open
        timeout_graceful_shutdown=1,
    )
