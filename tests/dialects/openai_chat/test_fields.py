"""The mapping table covers the canonical request, and is true."""

from __future__ import annotations

import dataclasses

from openai.types.chat import completion_create_params as params

from adapters.canonical.request import Cache, Reasoning, Request, Sampling
from adapters.dialects.openai_chat.fields import FIELDS

NESTED = {"sampling": Sampling, "reasoning": Reasoning, "cache": Cache}


def test_every_canonical_field_has_a_row() -> None:
    expected: set[str] = set()
    for field in dataclasses.fields(Request):
        inner = NESTED.get(field.name)
        if inner is None:
            expected.add(field.name)
        else:
            expected |= {f"{field.name}.{f.name}" for f in dataclasses.fields(inner)}
    assert set(FIELDS) == expected


def test_mapped_fields_exist_in_the_vendors_own_type() -> None:
    known = set(params.CompletionCreateParamsNonStreaming.__annotations__) | set(
        params.CompletionCreateParamsBase.__annotations__
    )
    targets = {field.to for field in FIELDS.values() if field.to is not None}
    assert targets - known == set()
