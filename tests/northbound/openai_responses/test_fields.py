"""The mapping table against the vendor's own types, and against what parsing does."""

from __future__ import annotations

from typing import get_type_hints

from openai.types.responses import response_create_params as sdk

from adapters.dialects.openai_responses import DIALECT
from gateway.northbound.openai_responses import RESPONSES, shapes

OPEN_RESPONSES = {"presence_penalty", "frequency_penalty"}
"""Request fields of the OpenResponses specification that OpenAI's API does not have."""


def test_every_field_of_the_vendor_has_a_row() -> None:
    theirs = set(get_type_hints(sdk.ResponseCreateParamsStreaming))
    assert set(RESPONSES.FIELDS) == theirs | OPEN_RESPONSES


def test_every_shape_has_a_row() -> None:
    assert set(shapes.Body.__annotations__) <= set(RESPONSES.FIELDS)


def test_every_canonical_name_exists() -> None:
    memory = {"memory.background", "memory.conversation", "memory.previous", "memory.store"}
    known = set(DIALECT.FIELDS) | memory | {"reasoning"}
    assert {row.to for row in RESPONSES.FIELDS.values()} <= known
