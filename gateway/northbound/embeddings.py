"""``POST /v1/embeddings``: the caller's bytes into a request, vectors into the answer.

``encoding_format`` is the caller's alone: left out it means ``float`` to them and is not sent
on, and whatever form the provider chose, they get theirs (case N23).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Required

from pydantic import ConfigDict, Discriminator, Field, Tag, TypeAdapter, with_config
from typing_extensions import TypedDict

from adapters.canonical.embedding import EmbeddingRequest, Embeddings
from adapters.dialects.base import Field as Row
from adapters.wire.embeddings import in_form
from adapters.wire.json import dumps
from gateway.northbound.allow import unknown
from gateway.northbound.base import DEFAULT_LIMITS, Limits
from gateway.northbound.body import read_object, validated

MAX_INPUTS = 2_048
"""Texts or token arrays of one request, as OpenAI has it."""

FIELDS: Mapping[str, Row] = {
    "dimensions": Row("mapped", "dimensions"),
    "encoding_format": Row("mapped", "form"),
    "input": Row("mapped", "inputs"),
    "model": Row("mapped", "model"),
    "user": Row("mapped", "end_user"),
}
"""Held equal to the SDK's ``EmbeddingCreateParams`` by a test."""

Token = Annotated[int, Field(ge=0)]
Tokens = Annotated[list[Token], Field(min_length=1, fail_fast=True)]
Words = Annotated[str, Field(min_length=1)]


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "text"
    first = value[0] if isinstance(value, list) and value else None
    return {int: "tokens", list: "arrays"}.get(type(first), "texts")


Input = Annotated[
    Annotated[Words, Tag("text")]
    | Annotated[Tokens, Tag("tokens")]
    | Annotated[
        list[Words], Field(min_length=1, max_length=MAX_INPUTS, fail_fast=True), Tag("texts")
    ]
    | Annotated[
        list[Tokens], Field(min_length=1, max_length=MAX_INPUTS, fail_fast=True), Tag("arrays")
    ],
    Discriminator(_kind),
]


@with_config(ConfigDict(extra="allow", strict=True, defer_build=True))
class Body(TypedDict, total=False):
    """The request body."""

    model: Required[Words]
    input: Required[Input]
    dimensions: Annotated[int, Field(ge=1)] | None
    encoding_format: Literal["float", "base64"] | None
    user: str | None


BODY = TypeAdapter(Body)


def parse(body: bytes, limits: Limits = DEFAULT_LIMITS) -> tuple[EmbeddingRequest, tuple[str, ...]]:
    """The request, and the names of fields that no provider will see.

    :raises Fault: ``bad_request`` with ``param``.
    """
    given = validated(BODY, read_object(body, limits))
    dropped: list[str] = []
    request = EmbeddingRequest(
        model=given["model"],
        inputs=_inputs(given["input"]),
        dimensions=given.get("dimensions"),
        form=given.get("encoding_format"),
        end_user=given.get("user"),
        extras=unknown(given, frozenset(FIELDS), "", dropped),
    )
    return request, tuple(dropped)


def _inputs(given: Any) -> tuple[str | tuple[int, ...], ...]:
    if isinstance(given, str):
        return (given,)
    if isinstance(given[0], int):
        return (tuple(given),)
    return tuple(item if isinstance(item, str) else tuple(item) for item in given)


def write(answer: Embeddings, request: EmbeddingRequest, report_model: str = "upstream") -> bytes:
    """The answer's body. Counts that the provider did not give are ``null``.

    :param report_model: ``upstream`` or ``alias``, as on the other endpoints.
    :raises Fault: ``protocol_error`` for a vector that can't be written in the asked form.
    """
    form = request.form or "float"
    tokens = None if answer.usage is None else answer.usage.prompt
    alias = report_model == "alias" or answer.model is None
    return dumps(
        {
            "object": "list",
            "data": [
                {"object": "embedding", "index": index, "embedding": in_form(vector, form)}
                for index, vector in enumerate(answer.vectors)
            ],
            "model": request.model if alias else answer.model,
            "usage": None if tokens is None else {"prompt_tokens": tokens, "total_tokens": tokens},
        }
    )
