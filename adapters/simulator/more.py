"""The endpoints beside the three protocols: embeddings, legacy completions, models."""

from __future__ import annotations

import base64
import hashlib
import struct
from typing import Any

from adapters.simulator.meter import tokens
from adapters.simulator.voice import Told, event, pieces
from adapters.simulator.words import Ask, Body, Frame, Refused, Trouble, Turn

_DIMENSIONS = 1536
_MODELS = ("gpt-5.2", "claude-sonnet-4-6", "echo", "sim-tool", "reasoning")
_CREATED = 1_760_000_000


def embeddings(body: Body) -> dict[str, Any]:
    """Vectors of unit length, made of a hash of the text: equal texts, equal vectors.

    :raises Refused: 400 for what is no input, or an encoding that does not exist.
    """
    size = body.get("dimensions", _DIMENSIONS)
    encoding = body.get("encoding_format", "float")
    if encoding not in ("float", "base64"):
        message = f"Invalid value: '{encoding}'. Supported values are: 'float' and 'base64'."
        raise Refused(Trouble(400, message, param="encoding_format"))
    if not isinstance(size, int) or not 1 <= size <= 4096:
        message = f"{size} is not in the range of 1 to 4096 - 'dimensions'"
        raise Refused(Trouble(400, message))
    texts = _inputs(body.get("input"))
    used = sum(len(text) if isinstance(text, list) else tokens(text) for text in texts)
    data = []
    for index, text in enumerate(texts):
        vector = _vector(str(text), size)
        packed = base64.b64encode(struct.pack(f"<{size}f", *vector)).decode()
        shown = packed if encoding == "base64" else vector
        data.append({"object": "embedding", "index": index, "embedding": shown})
    return {
        "object": "list",
        "data": data,
        "model": body["model"],
        "usage": {"prompt_tokens": used, "total_tokens": used},
    }


def _inputs(given: Any) -> list[Any]:
    if isinstance(given, str) and given:
        return [given]
    if isinstance(given, list) and given:
        if all(isinstance(one, int) for one in given):
            return [given]
        if all(isinstance(one, str | list) and one for one in given):
            return given
    raise Refused(Trouble(400, "'$.input' is invalid.", param="input"))


def _vector(text: str, size: int) -> list[float]:
    data = hashlib.shake_256(text.encode()).digest(2 * size)
    raw = [value / 32768 for value in struct.unpack(f"<{size}h", data)]
    length = sum(value * value for value in raw) ** 0.5 or 1.0
    return [struct.unpack("<f", struct.pack("<f", value / length))[0] for value in raw]


def read_completion(body: Body) -> Ask:
    """A legacy completion as an ask: the prompt is the last user text.

    :raises Refused: 400 for a prompt that is no text.
    """
    prompt = body.get("prompt", "")
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str):
        raise Refused(Trouble(400, "One prompt, as text, is taken here.", param="prompt"))
    limit = body.get("max_tokens", 16)
    if limit is not None and limit < 0:
        message = (
            "Invalid 'max_tokens': integer below minimum value. "
            f"Expected a value >= 0, but got {limit} instead."
        )
        raise Refused(Trouble(400, message, code="integer_below_min_value", param="max_tokens"))
    stop = body.get("stop") or ()
    return Ask(
        model=body["model"],
        stream=bool(body.get("stream")),
        turns=(Turn("user", prompt),),
        prompt=prompt,
        limit=limit,
        stops=(stop,) if isinstance(stop, str) else tuple(stop),
        choices=body.get("n") or 1,
        tokens=max(tokens(prompt), 1),
    )


def _completion_object(told: Told, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": told.mint.new("cmpl-", 29),
        "object": "text_completion",
        "created": told.created,
        "model": told.ask.model,
        "choices": choices,
        "system_fingerprint": "fp_simulator",
    }


def completion(told: Told) -> dict[str, Any]:
    """A legacy completion as one body."""
    text = told.answer.text
    choices = [
        {"text": text, "index": index, "logprobs": None, "finish_reason": _finish(told)}
        for index in range(told.ask.choices)
    ]
    used = told.ask.choices * tokens(text)
    counted = {
        "prompt_tokens": told.ask.tokens,
        "completion_tokens": used,
        "total_tokens": told.ask.tokens + used,
    }
    return {**_completion_object(told, choices), "usage": counted}


def _finish(told: Told) -> str:
    return "length" if told.answer.ending == "length" else "stop"


def completion_stream(told: Told) -> tuple[Frame, ...]:
    """A legacy completion as a stream."""
    base = _completion_object(told, [])
    frames = []
    for index in range(told.ask.choices):
        for piece in pieces(told.answer.text):
            choice = {"text": piece, "index": index, "logprobs": None, "finish_reason": None}
            frames.append(event("delta", {**base, "choices": [choice]}))
        choice = {"text": "", "index": index, "logprobs": None, "finish_reason": _finish(told)}
        frames.append(event("terminal", {**base, "choices": [choice]}))
    if (told.body.get("stream_options") or {}).get("include_usage"):
        frames.append(event("usage", {**base, "usage": completion(told)["usage"]}))
    return (*frames, Frame("done", b"data: [DONE]\n\n"))


def model(name: str, anthropic: bool) -> dict[str, Any]:
    """One model; every name exists."""
    if anthropic:
        made = "2026-01-01T00:00:00Z"
        return {"type": "model", "id": name, "display_name": name, "created_at": made}
    return {"id": name, "object": "model", "created": _CREATED, "owned_by": "simulator"}


def models(anthropic: bool) -> dict[str, Any]:
    """A list of models in either vendor's shape."""
    listed = [model(name, anthropic) for name in _MODELS]
    if anthropic:
        edges = {"first_id": _MODELS[0], "last_id": _MODELS[-1]}
        return {"data": listed, "has_more": False, **edges}
    return {"object": "list", "data": listed}
