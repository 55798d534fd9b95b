"""The legacy ``POST /v1/completions`` on chat models: a prompt in, plain text out.

The prompt becomes one user message. What a chat model can't do (continue token arrays, fill in
before a suffix, choose the best of several) is refused by name, never ignored. Answers are never
relayed, because no chat provider writes this shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Required

from pydantic import ConfigDict, Discriminator, Field, Tag, TypeAdapter, with_config
from typing_extensions import TypedDict

from adapters.canonical.completion import Completion
from adapters.canonical.events import (
    Event,
    Failed,
    Finished,
    PartAnnotated,
    PartStarted,
    Reason,
    Started,
    Terminal,
    TextDelta,
    Usage,
    UsageReported,
)
from adapters.canonical.faults import Fault
from adapters.canonical.parts import Dialect, Text
from adapters.canonical.request import Message, Request, Sampling
from adapters.dialects.base import Field as Row
from adapters.wire import sse
from adapters.wire.json import dumps
from adapters.wire.openai_chat import WRITTEN_REASONS, write_usage
from gateway.northbound import errors
from gateway.northbound.allow import unknown
from gateway.northbound.base import (
    DEFAULT_LIMITS,
    MOST_TOKENS,
    Asked,
    Envelope,
    Limits,
    Northbound,
    Style,
)
from gateway.northbound.body import read_object, validated

FIELDS: Mapping[str, Row] = {
    "best_of": Row("refused", None, "Only 1 is taken: nothing here ranks answers."),
    "echo": Row("mapped", "style.echo", "The prompt is written before the answer."),
    "frequency_penalty": Row("mapped", "sampling.frequency_penalty"),
    "logit_bias": Row("mapped", "sampling.logit_bias"),
    "logprobs": Row("mapped", "sampling.top_logprobs"),
    "max_tokens": Row("mapped", "sampling.max_output_tokens", "Unset stays unset; not 16."),
    "model": Row("mapped", "model"),
    "n": Row("mapped", "sampling.n", "Above the configured number of choices: a 400."),
    "presence_penalty": Row("mapped", "sampling.presence_penalty"),
    "prompt": Row("mapped", "messages", "One text. Token arrays and several prompts: a 400."),
    "seed": Row("mapped", "sampling.seed"),
    "stop": Row("mapped", "sampling.stop"),
    "stream": Row("mapped", "stream"),
    "stream_options": Row("mapped", "style.include_usage"),
    "suffix": Row("refused", None, "Chat models don't fill in."),
    "temperature": Row("mapped", "sampling.temperature"),
    "top_p": Row("mapped", "sampling.top_p"),
    "user": Row("mapped", "end_user"),
}
"""Held equal to the SDK's ``CompletionCreateParams`` by a test."""


def _has_text(value: Any) -> str:
    return "string" if isinstance(value, str) else "list"


@with_config(ConfigDict(extra="allow", strict=True, defer_build=True))
class StreamOptions(TypedDict, total=False):
    """``stream_options``."""

    include_usage: bool | None


Penalty = Annotated[float, Field(ge=-2, le=2)]
Stops = Annotated[list[str], Field(max_length=4)]


@with_config(ConfigDict(extra="allow", strict=True, allow_inf_nan=False, defer_build=True))
class Body(TypedDict, total=False):
    """The request body."""

    model: Required[Annotated[str, Field(min_length=1)]]
    prompt: Required[Any]
    best_of: Annotated[int, Field(ge=1)] | None
    echo: bool | None
    frequency_penalty: Penalty | None
    logit_bias: dict[str, Annotated[float, Field(ge=-100, le=100)]] | None
    logprobs: Annotated[int, Field(ge=0, le=5)] | None
    max_tokens: Annotated[int, Field(ge=1, le=MOST_TOKENS)] | None
    n: Annotated[int, Field(ge=1)] | None
    presence_penalty: Penalty | None
    seed: int | None
    stop: (
        Annotated[
            Annotated[str, Tag("string")] | Annotated[Stops, Tag("list")],
            Discriminator(_has_text),
        ]
        | None
    )
    stream: bool | None
    stream_options: StreamOptions | None
    suffix: str | None
    temperature: Annotated[float, Field(ge=0, le=2)] | None
    top_p: Annotated[float, Field(ge=0, le=1)] | None
    user: str | None


BODY = TypeAdapter(Body)


def parse(body: bytes, headers: Mapping[str, str], limits: Limits = DEFAULT_LIMITS) -> Asked:
    """Understand a legacy completion request.

    :raises Fault: ``bad_request`` or ``unsupported``, with ``param``.
    """
    given = validated(BODY, read_object(body, limits))
    prompt = _prompt(given["prompt"])
    _refuse(given, limits)
    dropped: list[str] = []
    stop, logprobs = given.get("stop"), given.get("logprobs")
    request = Request(
        model=given["model"],
        messages=(Message("user", (Text(prompt),)),),
        origin="openai-chat",
        sampling=Sampling(
            max_output_tokens=given.get("max_tokens"),
            temperature=given.get("temperature"),
            top_p=given.get("top_p"),
            stop=() if stop is None else (stop,) if isinstance(stop, str) else tuple(stop),
            seed=given.get("seed"),
            frequency_penalty=given.get("frequency_penalty"),
            presence_penalty=given.get("presence_penalty"),
            logit_bias=given.get("logit_bias"),
            logprobs=None if logprobs is None else True,
            top_logprobs=logprobs or None,
            n=given.get("n"),
        ),
        end_user=given.get("user"),
        stream=bool(given.get("stream")),
        extras=unknown(given, frozenset(FIELDS), "", dropped),
    )
    options = given.get("stream_options") or {}
    style = Style(
        include_usage=bool(options.get("include_usage")),
        echo={"prompt": prompt} if given.get("echo") else {},
    )
    return Asked(request, style, tuple(dropped))


def _prompt(given: Any) -> str:
    if isinstance(given, list) and len(given) == 1 and isinstance(given[0], str):
        return given[0]
    if isinstance(given, str):
        return given
    if isinstance(given, list) and given and isinstance(given[0], str):
        raise Fault(
            "unsupported",
            "prompt holds several texts, and one call gives one answer here. Send a request a "
            "prompt.",
            param="prompt",
        )
    raise Fault(
        "unsupported",
        "prompt must be a text: chat models take no token arrays, and none is no prompt.",
        param="prompt",
    )


def _refuse(given: Mapping[str, Any], limits: Limits) -> None:
    if given.get("suffix"):
        raise Fault("unsupported", "suffix: chat models don't fill in text.", param="suffix")
    best_of, n = given.get("best_of") or 1, given.get("n") or 1
    if best_of != 1:
        raise Fault("unsupported", "best_of: only 1 is supported here.", param="best_of")
    if n > limits.choices:
        raise Fault("unsupported", f"n: at most {limits.choices} here.", param="n")


# --------------------------------------------------------------------------- answers


def _reason(reason: Reason) -> str:
    """There are three reasons here; a call can't be asked for, so it ends like a stop."""
    shown = WRITTEN_REASONS[reason]
    return "stop" if shown == "tool_calls" else shown


class LegacyLogprobs:
    """Chat's list of tokens as the four columns of the older form."""

    __slots__ = ("_offset",)

    def __init__(self, offset: int) -> None:
        self._offset = offset

    def columns(self, tokens: Iterable[Any]) -> dict[str, Any] | None:
        """The ``logprobs`` object for the next ``tokens``, if there are any."""
        columns: dict[str, Any] = {
            "tokens": [],
            "token_logprobs": [],
            "top_logprobs": [],
            "text_offset": [],
        }
        for token in _tokens(tokens):
            columns["tokens"].append(token["token"])
            columns["token_logprobs"].append(token.get("logprob"))
            best = _tokens(token.get("top_logprobs"))
            columns["top_logprobs"].append({item["token"]: item.get("logprob") for item in best})
            columns["text_offset"].append(self._offset)
            self._offset += len(token["token"])
        return columns if columns["tokens"] else None


def _tokens(given: Any) -> list[Mapping[str, Any]]:
    """Those of ``given`` that are tokens; whatever else a provider sends there has no column."""
    entries = given if isinstance(given, list | tuple) else ()
    return [one for one in entries if isinstance(one, dict) and isinstance(one.get("token"), str)]


def _outer(id: str, created: int, model: str) -> dict[str, Any]:
    return {"id": id, "object": "text_completion", "created": created, "model": model}


def _model(upstream: str | None, envelope: Envelope) -> str:
    return envelope.alias if envelope.report_model == "alias" or not upstream else upstream


def whole(completion: Completion, envelope: Envelope) -> bytes:
    """One ``text_completion`` body; reasoning has no place in it."""
    terminal = completion.terminal
    finished = terminal if isinstance(terminal, Finished) else Finished("unknown")
    reasons = {0: (finished.reason, finished.raw_reason), **finished.choices}
    echo = str(envelope.style.echo.get("prompt", ""))
    created = envelope.created if completion.created is None else completion.created
    body = _outer(envelope.id, created, _model(completion.model, envelope))
    body["choices"] = [
        _choice(completion, number, echo, _reason(reasons[number][0])) for number in sorted(reasons)
    ]
    body["usage"] = write_usage(completion.usage)
    return dumps(body)


def _choice(completion: Completion, number: int, echo: str, reason: str) -> dict[str, Any]:
    texts: list[str] = [echo]
    tokens: list[Any] = []
    for index, part in enumerate(completion.parts):
        if isinstance(part, Text) and completion.choices[index] == number:
            texts.append(part.text)
            tokens.extend(completion.logprobs.get(index, ()))
    return {
        "text": "".join(texts),
        "index": number,
        "logprobs": LegacyLogprobs(len(echo)).columns(tokens),
        "finish_reason": reason,
    }


class StreamEncoder:
    """One streamed answer; see :class:`gateway.northbound.base.StreamEncoder`."""

    PING: ClassVar[bytes] = sse.PING
    told = None

    __slots__ = ("_choices", "_envelope", "_head", "_logprobs", "_texts", "_usage")

    def __init__(self, envelope: Envelope) -> None:
        self._envelope = envelope
        self._head = _outer(envelope.id, envelope.created, envelope.alias)
        self._texts: dict[int, int] = {}
        self._choices: set[int] = set()
        self._logprobs: dict[int, LegacyLogprobs] = {}
        self._usage: Usage | None = None

    def feed(self, events: list[Event]) -> bytes:
        """The frames for ``events``."""
        return b"".join(self._frame(event) for event in events)

    def _frame(self, event: Event) -> bytes:
        match event:
            case TextDelta(index=index, text=text) if index in self._texts and text:
                return self._chunk(self._texts[index], text)
            case PartStarted(head=Text(), index=index, choice=choice):
                self._texts[index] = choice
                return self._open(choice)
            case PartAnnotated(index=index, key="logprobs") if index in self._texts:
                choice = self._texts[index]
                columns = self._logprobs[choice].columns(event.value)
                return self._chunk(choice, "", columns) if columns else b""
            case UsageReported():
                self._usage = event.usage
            case Started():
                created = self._envelope.created if event.created is None else event.created
                model = _model(event.model, self._envelope)
                self._head = _outer(self._envelope.id, created, model)
            case _:
                pass  # Reasoning, calls and other protocols' blocks have no place here.
        return b""

    def verdict(self, told: Mapping[str, Any]) -> bytes:
        """Nothing: this protocol has no output schemas."""
        return b""

    def finish(self, terminal: Terminal) -> bytes:
        """The end of the stream; see the interface."""
        if isinstance(terminal, Failed):
            return sse.frame(errors.body(terminal.fault, "openai-chat"))
        reasons = {0: (terminal.reason, terminal.raw_reason), **terminal.choices}
        out = [
            self._open(number) + self._chunk(number, "", reason=_reason(reasons[number][0]))
            for number in sorted(reasons)
        ]
        if self._envelope.style.include_usage:
            last = {**self._head, "choices": [], "usage": write_usage(self._usage)}
            out.append(sse.frame(dumps(last)))
        return b"".join(out) + sse.DONE

    def _open(self, choice: int) -> bytes:
        """The prompt, if the caller wants it back, before a choice's first words."""
        if choice in self._choices:
            return b""
        self._choices.add(choice)
        echo = str(self._envelope.style.echo.get("prompt", ""))
        self._logprobs[choice] = LegacyLogprobs(len(echo))
        return self._chunk(choice, echo) if echo else b""

    def _chunk(
        self,
        number: int,
        text: str,
        logprobs: dict[str, Any] | None = None,
        reason: str | None = None,
    ) -> bytes:
        choice = {"text": text, "index": number, "logprobs": logprobs, "finish_reason": reason}
        chunk = {**self._head, "choices": [choice]}
        if self._envelope.style.include_usage:
            chunk["usage"] = None
        return sse.frame(dumps(chunk))


class Completions:
    """The legacy dialect; see :class:`gateway.northbound.base.Northbound`.

    Its name is chat's, because that is the protocol its requests become.
    """

    __slots__ = ()

    name: Dialect = "openai-chat"
    FIELDS: Mapping[str, Row] = FIELDS

    def parse(
        self, body: bytes, headers: Mapping[str, str], limits: Limits = DEFAULT_LIMITS
    ) -> Asked:
        """Understand a request body; this dialect reads no headers."""
        return parse(body, headers, limits)

    def encoder(self, envelope: Envelope) -> StreamEncoder:
        """A fresh encoder for one streamed answer."""
        return StreamEncoder(envelope)

    def whole(self, completion: Completion, envelope: Envelope) -> bytes:
        """One ``text_completion`` body."""
        return whole(completion, envelope)


COMPLETIONS: Northbound = Completions()
