"""The provider itself: an HTTP request in, an HTTP answer out, no socket in between.

Order of the checks, as with the real ones: path, key, JSON, the strict judge; then the
model's name decides what is answered and how it goes wrong.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import unquote

import orjson

from adapters.canonical.record import record
from adapters.simulator import judge_messages, mind, more
from adapters.simulator.catalogue import Kind
from adapters.simulator.http import Request
from adapters.simulator.log import Attempt, Log
from adapters.simulator.meter import PromptCache, measure
from adapters.simulator.names import Names, Word
from adapters.simulator.script import Scripts
from adapters.simulator.voice import Mint, Told, Voice, pieces
from adapters.simulator.voices import CHAT, MESSAGES, RESPONSES
from adapters.simulator.wirefaults import Scene
from adapters.simulator.words import (
    Answer,
    Ask,
    Body,
    Frame,
    Refused,
    Reply,
    Say,
    Step,
    Trouble,
    Wait,
)
from adapters.wire.json import dumps, loads_exact

Result = TypeVar("Result")
Words = Mapping[Kind, tuple[Word, ...]]

WRONG_KEY = "sk-wrong"
_SENSELESS = (LookupError, TypeError, AttributeError, ValueError, RecursionError, re.error)
"""What reading raises where the request has another shape than it should."""


@record(frozen=True, slots=True)
class Endpoint:
    """A path that answers requests for a model.

    ``write`` makes the reply; it is given the words of the name, and the answer of a script if
    there is one.
    """

    voice: Voice
    judge: Callable[[Body, Mapping[str, str]], None]
    read: Callable[[Body], Ask]
    write: Callable[[Voice, Ask, Words, Answer | None, Body], Reply]


class Provider:
    """The state of one simulated provider: its log, its scripts, its caches, its counters."""

    def __init__(self, keep: int) -> None:
        self.log = Log(keep)
        self.scripts = Scripts()
        self._mint = Mint()
        self._cache = PromptCache()
        self._names = Names()
        counting = Endpoint(MESSAGES, judge_messages.judge_count, MESSAGES.read, self._count)
        embedding = Endpoint(CHAT, more.judge_embeddings, more.read_embeddings, self._embed)
        completing = Endpoint(CHAT, more.judge_completion, more.read_completion, self._complete)
        self._endpoints = {
            "/chat/completions": self._conversing(CHAT),
            "/responses": self._conversing(RESPONSES),
            "/messages": self._conversing(MESSAGES),
            "/messages/count_tokens": counting,
            "/embeddings": embedding,
            "/completions": completing,
        }

    def _conversing(self, voice: Voice) -> Endpoint:
        return Endpoint(voice, voice.judge, voice.read, self._converse)

    def reset(self) -> None:
        """Forget everything but the numbers of attempts."""
        self.log.clear()
        self.scripts.clear()
        self._cache = PromptCache()
        self._names = Names()

    def handle(self, request: Request) -> tuple[Reply, Attempt]:
        """Answer one request; the attempt is in the log before the first byte goes out."""
        body = _parsed(request.body)
        model = body.get("model") if isinstance(body, dict) else None
        attempt = Attempt(
            number=self.log.total + 1,
            method=request.method,
            path=request.path,
            headers=request.headers,
            raw=request.body,
            body=body,
            model=model if isinstance(model, str) else None,
            line=request.line,
        )
        self.log.add(attempt)
        path = request.path.partition("?")[0].removeprefix("/v1")
        endpoint = self._endpoints.get(path) if request.method == "POST" else None
        if endpoint is not None:
            voice = endpoint.voice
        else:
            voice = MESSAGES if "anthropic-version" in request.headers else CHAT
        try:
            if request.method in ("GET", "HEAD") and path in ("", "/"):
                return self._json({"simulator": "speaks for a provider"}, voice), attempt
            _authorise(request.headers, voice)
            if endpoint is None:
                return self._look_up(voice, attempt, path), attempt
            return self._answer(endpoint, attempt), attempt
        except Refused as refused:
            attempt.refused = refused.trouble.message
            return self._error(voice, refused.trouble), attempt

    def _look_up(self, voice: Voice, attempt: Attempt, path: str) -> Reply:
        """What needs no model to answer: the list of models, or one."""
        if attempt.method == "GET" and path == "/models":
            return self._json(more.models(voice is MESSAGES), voice)
        if attempt.method == "GET" and path.startswith("/models/"):
            return self._json(more.model(unquote(path[8:]), voice is MESSAGES), voice)
        message = f"Invalid URL ({attempt.method} {attempt.path})"
        raise Refused(Trouble(404, message, "not_found_error"))

    def _answer(self, endpoint: Endpoint, attempt: Attempt) -> Reply:
        """Judge, answer, and spoil: everything that a model's name decides."""
        body, model = _object(attempt)
        voice = endpoint.voice
        words = self._names.read(model)
        if not any(word.entry.name == "lenient" for word in words.get("flag", ())):
            _understood(endpoint.judge, body, attempt.headers)
        ask = _understood(endpoint.read, body)
        scripted = self.scripts.next(ask)
        if isinstance(scripted, Reply):
            return scripted
        if isinstance(scripted, str):
            words, scripted = self._names.read(scripted), None
        for word in words.get("error", ()):
            trouble = word.entry.act(word.args, attempt)
            if trouble is not None:
                return self._error(voice, trouble)
        reply = endpoint.write(voice, ask, words, scripted, body)
        for word in words.get("spoil", ()):
            reply = word.entry.act(reply, Scene(voice, word.args))
        return reply

    def _converse(
        self, voice: Voice, ask: Ask, words: Words, scripted: Answer | None, body: Body
    ) -> Reply:
        answer = scripted if scripted is not None else _understood(_answer, ask, words)
        usage = measure(ask, answer, self._cache) if answer.reports_usage else None
        told = Told(ask, answer, usage, body, self._mint, int(time.time()))
        if not ask.stream:
            delay = answer.pace * _length(answer)
            return replace(self._whole(voice.whole(told), voice), delay=delay)
        steps: list[Step] = []
        for frame in voice.stream(told):
            if answer.pace and frame.kind == "delta":
                steps.append(Wait(answer.pace))
            steps.append(frame)
        return self._stream(steps, voice)

    def _count(
        self, voice: Voice, ask: Ask, words: Words, scripted: Answer | None, body: Body
    ) -> Reply:
        return self._json({"input_tokens": ask.tokens}, voice)

    def _embed(
        self, voice: Voice, ask: Ask, words: Words, scripted: Answer | None, body: Body
    ) -> Reply:
        return self._json(more.embeddings(body), voice)

    def _complete(
        self, voice: Voice, ask: Ask, words: Words, scripted: Answer | None, body: Body
    ) -> Reply:
        answer = scripted if scripted is not None else _understood(_answer, ask, words)
        told = Told(ask, answer, None, body, self._mint, int(time.time()))
        if ask.stream:
            return self._stream(more.completion_stream(told), voice)
        return self._json(more.completion(told), voice)

    def _stream(self, steps: Iterable[Step], voice: Voice) -> Reply:
        headers = {
            **voice.headers(self._mint),
            "content-type": "text/event-stream; charset=utf-8",
            "cache-control": "no-cache",
        }
        return Reply(200, headers, tuple(steps), stream=True)

    def _whole(self, data: bytes, voice: Voice) -> Reply:
        headers = {**voice.headers(self._mint), "content-type": "application/json"}
        return Reply(200, headers, (Frame("body", data),))

    def _json(self, value: object, voice: Voice) -> Reply:
        return self._whole(dumps(value), voice)

    def _error(self, voice: Voice, trouble: Trouble) -> Reply:
        headers = dict(voice.headers(self._mint))
        request_id = next((value for key, value in headers.items() if "request-id" in key), "")
        headers |= {"content-type": "application/json", "x-should-retry": "false"}
        headers |= trouble.headers
        return Reply(trouble.status, headers, (Frame("body", voice.error(trouble, request_id)),))


def _answer(ask: Ask, words: Words) -> Answer:
    """What the model says by itself or by its name's leave."""
    made = [word.entry.act(ask, word.args) for word in words.get("answer", ())]
    answer: Answer = made[-1] if made else mind.reply(ask)
    if ask.thinks and answer.parts:
        answer = replace(answer, parts=(mind.thought(ask), *answer.parts))
    answer = mind.bounded(answer, ask)
    for word in words.get("change", ()):
        answer = word.entry.act(answer, ask, word.args)
    return answer


def _understood(reader: Callable[..., Result], *given: Any) -> Result:
    """``reader`` of ``given``, where what it can't make sense of is the caller's fault."""
    try:
        return reader(*given)
    except _SENSELESS as error:
        message = f"The request can't be understood: {type(error).__name__} {error}"
        raise Refused(Trouble(400, message)) from error


def _authorise(headers: Mapping[str, str], voice: Voice) -> None:
    """Any key will do but ``sk-wrong``."""
    key = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
    if voice is MESSAGES and key in ("", WRONG_KEY):
        message = "invalid x-api-key" if key else "x-api-key header is required"
        raise Refused(Trouble(401, message, "authentication_error"))
    if not key:
        message = "You didn't provide an API key. Use an Authorization header with Bearer auth."
        raise Refused(Trouble(401, message))
    if key == WRONG_KEY:
        message = "Incorrect API key provided: sk-***ng."
        raise Refused(Trouble(401, message, code="invalid_api_key"))


def _parsed(data: bytes) -> Any:
    try:
        orjson.loads(data)  # as most providers do, it takes no number beyond floats
        return loads_exact(data)
    except ValueError:
        return None


def _object(attempt: Attempt) -> tuple[Body, str]:
    if not isinstance(attempt.body, dict):
        raise Refused(Trouble(400, "We could not parse the JSON body of your request."))
    if attempt.model is None:
        raise Refused(Trouble(400, "you must provide a model parameter", param="model"))
    return attempt.body, attempt.model


def _length(answer: Answer) -> int:
    return sum(
        len(pieces(part.text, part.pieces)) for part in answer.parts if isinstance(part, Say)
    )
