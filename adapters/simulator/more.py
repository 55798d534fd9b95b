"""The endpoints beside the three protocols: embeddings, legacy completions, models."""

from __future__ import annotations

import base64
import hashlib
import struct
from collections.abc import Mapping
from typing import Any

from adapters.simulator.judge import OpenAI, refuse
from adapters.simulator.meter import tokens
from adapters.simulator.voice import Told, event, pieces
from adapters.simulator.words import Ask, Body, Frame, Turn

_DIMENSIONS = 1536
_MOST_DIMENSIONS = 4096
_EMBEDDING_FIELDS = frozenset({"input", "model", "dimensions", "encoding_format", "user"})
_COMPLETION_FIELDS = frozenset(
    {"best_of", "echo", "frequency_penalty", "logit_bias", "logprobs", "max_tokens", "model"}
    | {"n", "presence_penalty", "prompt", "seed", "stop", "stream", "stream_options", "suffix"}
    | {"temperature", "top_p", "user"}
)
_MODELS = ("gpt-5.2", "claude-sonnet-4-6", "echo", "sim-tool", "reasoning")
_CREATED = 1_760_000_000


def judge_embeddings(body: Body, headers: Mapping[str, str]) -> None:
    """Refuse what the vendor refuses.

    :raises Refused: 400 for an encoding that does not exist, or dimensions out of range.
    """
    OpenAI.known(body, _EMBEDDING_FIELDS)
    OpenAI.required(body, "input")
    encoding = body.get("encoding_format", "float")
    OpenAI.one_of(encoding, {"float", "base64"}, "encoding_format")
    size = body.get("dimensions", _DIMENSIONS)
    if not isinstance(size, int) or not 1 <= size <= _MOST_DIMENSIONS:
        refuse(f"{size} is not in the range of 1 to {_MOST_DIMENSIONS} - 'dimensions'")
    _inputs(body["input"])


def read_embeddings(body: Body) -> Ask:
    """What is asked: so many tokens."""
    used = sum(
        len(text) if isinstance(text, list) else tokens(text) for text in _inputs(body["input"])
    )
    return Ask(body["model"], stream=False, tokens=used)


def embeddings(body: Body) -> dict[str, Any]:
    """Vectors of unit length, made of a hash of the text: equal texts, equal vectors."""
    size = body.get("dimensions", _DIMENSIONS)
    data = []
    for index, text in enumerate(_inputs(body["input"])):
        vector = _vector(str(text), size)
        packed = base64.b64encode(struct.pack(f"<{size}f", *vector)).decode()
        shown = packed if body.get("encoding_format") == "base64" else vector
        data.append({"object": "embedding", "index": index, "embedding": shown})
    used = read_embeddings(body).tokens
    return {
        "object": "list",
        "data": data,
        "model": body["model"],
        "usage": {"prompt_tokens": used, "total_tokens": used},
    }


def _inputs(given: Any) -> list[Any]:
    """The texts or token lists, one a vector."""
    if isinstance(given, str) or (isinstance(given, list) and _tokens(given)):
        given = [given]
    sound = isinstance(given, list) and all(isinstance(one, str | list) and one for one in given)
    if not given or not sound:
        refuse("'$.input' is invalid.", param="input")
    return list(given)


def _tokens(given: list[Any]) -> bool:
    return bool(given) and all(isinstance(one, int) for one in given)


def _vector(text: str, size: int) -> list[float]:
    data = hashlib.shake_256(text.encode()).digest(2 * size)
    raw = [value / 32768 for value in struct.unpack(f"<{size}h", data)]
    length = sum(value * value for value in raw) ** 0.5 or 1.0
    return [struct.unpack("<f", struct.pack("<f", value / length))[0] for value in raw]


def judge_completion(body: Body, headers: Mapping[str, str]) -> None:
    """Refuse what the vendor refuses, and several prompts at once.

    :raises Refused: with the vendor's 400.
    """
    OpenAI.known(body, _COMPLETION_FIELDS)
    OpenAI.number(body, "max_tokens", 0, None)
    OpenAI.number(body, "temperature", 0, 2)
    if not isinstance(_prompt(body), str):
        refuse("One prompt, as text, is taken here.", param="prompt")


def _prompt(body: Body) -> Any:
    prompt = body.get("prompt", "")
    return prompt[0] if isinstance(prompt, list) and len(prompt) == 1 else prompt


def read_completion(body: Body) -> Ask:
    """A legacy completion as an ask: the prompt is the last user text."""
    prompt = _prompt(body)
    stop = body.get("stop") or ()
    return Ask(
        model=body["model"],
        stream=bool(body.get("stream")),
        turns=(Turn("user", prompt),),
        prompt=prompt,
        limit=body.get("max_tokens", 16),
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
