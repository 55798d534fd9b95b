"""The provider itself: an HTTP request in, an HTTP answer out, no socket in between.

Order of the checks, as with the real ones: path, key, JSON, the strict judge; then the
model's name decides what is answered and how it goes wrong.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import orjson

from adapters.simulator import judge_messages, mind, more
from adapters.simulator.catalogue import Kind
from adapters.simulator.http import Request
from adapters.simulator.log import Attempt, Log
from adapters.simulator.meter import PromptCache, measure
from adapters.simulator.names import Names, Word
from adapters.simulator.script import Scripts
from adapters.simulator.voice import Mint, Told, Voice
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

Result = TypeVar("Result")

WRONG_KEY = "sk-wrong"


class Provider:
    """The state of one simulated provider: its log, its scripts, its caches, its counters."""

    def __init__(self, keep: int) -> None:
        self.log = Log(keep)
        self.scripts = Scripts()
        self._mint = Mint()
        self._cache = PromptCache()
        self._names = Names()
        self._routes: dict[tuple[str, str], tuple[Voice, Callable[..., Reply]]] = {
            ("POST", "/chat/completions"): (CHAT, self._converse),
            ("POST", "/responses"): (RESPONSES, self._converse),
            ("POST", "/messages"): (MESSAGES, self._converse),
            ("POST", "/messages/count_tokens"): (MESSAGES, self._count),
            ("POST", "/embeddings"): (CHAT, self._embed),
            ("POST", "/completions"): (CHAT, self._complete),
            ("GET", "/models"): (CHAT, self._models),
        }

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
            connection=request.connection,
        )
        self.log.add(attempt)
        path = request.path.partition("?")[0].removeprefix("/v1")
        if request.method in ("GET", "HEAD") and path in ("", "/"):
            return _json(200, {"simulator": "POST /v1/chat/completions and friends"}), attempt
        voice, act = self._routes.get((request.method, path), (CHAT, self._nowhere))
        if request.method == "GET" and "anthropic-version" in request.headers:
            voice = MESSAGES
        try:
            _authorise(request.headers, voice)
            return act(voice, attempt, path), attempt
        except Refused as refused:
            attempt.refused = refused.trouble.message
            return self._error(voice, refused.trouble), attempt

    def _nowhere(self, voice: Voice, attempt: Attempt, path: str) -> Reply:
        if attempt.method == "GET" and (found := re.fullmatch(r"/models/(.+)", path)):
            return self._model(voice, found[1])
        raise Refused(
            Trouble(404, f"Invalid URL ({attempt.method} {attempt.path})", "not_found_error")
        )

    def _converse(self, voice: Voice, attempt: Attempt, path: str) -> Reply:
        body = _object(attempt)
        words = self._names.read(attempt.model or "")
        if not any(word.entry.name == "lenient" for word in words.get("flag", ())):
            _understood(voice.judge, body, attempt.headers)
        ask = _understood(voice.read, body)
        scripted = self.scripts.next(ask)
        if isinstance(scripted, Reply):
            return scripted
        if isinstance(scripted, str):
            words = self._names.read(scripted)
        for word in words.get("error", ()):
            trouble = word.entry.act(word.args, attempt)
            if trouble is not None:
                return self._error(voice, trouble)
        answer = scripted if isinstance(scripted, Answer) else _answer(ask, words)
        reply = self._told(voice, ask, answer, body)
        for word in words.get("spoil", ()):
            reply = word.entry.act(reply, Scene(voice, word.args))
        return reply

    def _told(self, voice: Voice, ask: Ask, answer: Answer, body: Body) -> Reply:
        """``answer`` in the words of the protocol, as a stream or whole."""
        usage = measure(ask, answer, self._cache) if answer.reports_usage else None
        told = Told(ask, answer, usage, body, self._mint, int(time.time()))
        headers = dict(voice.headers(self._mint))
        if not ask.stream:
            headers["content-type"] = "application/json"
            frame = Frame("body", voice.whole(told))
            return Reply(200, headers, (frame,), delay=_length(answer) * answer.pace)
        headers["content-type"] = "text/event-stream; charset=utf-8"
        steps: list[Step] = []
        for frame in voice.stream(told):
            if answer.pace and frame.kind == "delta":
                steps.append(Wait(answer.pace))
            steps.append(frame)
        return Reply(200, headers, tuple(steps), stream=True)

    def _error(self, voice: Voice, trouble: Trouble) -> Reply:
        headers = dict(voice.headers(self._mint))
        request_id = next((value for key, value in headers.items() if "request-id" in key), "")
        headers |= {"content-type": "application/json", "x-should-retry": "false"}
        headers |= trouble.headers
        return Reply(trouble.status, headers, (Frame("body", voice.error(trouble, request_id)),))

    def _count(self, voice: Voice, attempt: Attempt, path: str) -> Reply:
        body = _object(attempt)
        _understood(judge_messages.judge_count, body, attempt.headers)
        ask = _understood(voice.read, body)
        return _json(200, {"input_tokens": ask.tokens}, voice.headers(self._mint))

    def _embed(self, voice: Voice, attempt: Attempt, path: str) -> Reply:
        return _json(200, more.embeddings(_object(attempt)), voice.headers(self._mint))

    def _complete(self, voice: Voice, attempt: Attempt, path: str) -> Reply:
        body = _object(attempt)
        ask = more.read_completion(body)
        told = Told(
            ask, mind.bounded(mind.reply(ask), ask), None, body, self._mint, int(time.time())
        )
        headers = dict(voice.headers(self._mint))
        if ask.stream:
            headers["content-type"] = "text/event-stream; charset=utf-8"
            return Reply(200, headers, more.completion_stream(told), stream=True)
        return _json(200, more.completion(told), headers)

    def _models(self, voice: Voice, attempt: Attempt, path: str) -> Reply:
        return _json(200, more.models(voice is MESSAGES), voice.headers(self._mint))

    def _model(self, voice: Voice, name: str) -> Reply:
        return _json(200, more.model(name, voice is MESSAGES), voice.headers(self._mint))


def _answer(ask: Ask, words: Mapping[Kind, tuple[Word, ...]]) -> Answer:
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
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, re.error) as error:
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
        return orjson.loads(data)
    except ValueError:
        return None


def _object(attempt: Attempt) -> Body:
    if not isinstance(attempt.body, dict):
        raise Refused(Trouble(400, "We could not parse the JSON body of your request.", code=None))
    if attempt.model is None:
        message = "you must provide a model parameter"
        raise Refused(Trouble(400, message, param="model"))
    return attempt.body


def _length(answer: Answer) -> int:
    return sum(
        len(part.pieces or part.text.split()) for part in answer.parts if isinstance(part, Say)
    )


def _json(status: int, value: object, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply(
        status,
        {**(headers or {}), "content-type": "application/json"},
        (Frame("body", orjson.dumps(value)),),
    )
