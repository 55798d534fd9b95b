"""Every field of the vendor's own request type has a row, and every row has its shape."""

import typing

from openai.types.chat import completion_create_params as params
from openai.types.shared import reasoning_effort

from gateway.northbound.openai_chat import messages, shapes
from gateway.northbound.openai_chat.fields import FIELDS

OURS = {"prompt"}


def sdk_fields() -> set[str]:
    return set(params.CompletionCreateParamsNonStreaming.__annotations__) | set(
        params.CompletionCreateParamsBase.__annotations__
    )


def test_every_field_of_the_sdk_has_a_row_and_no_row_is_stale():
    assert set(FIELDS) - OURS == sdk_fields()


def test_mapped_fields_are_checked_and_the_rest_become_extras():
    extras = {name for name, field in FIELDS.items() if field.to == "extras"}
    assert set(shapes.Body.__annotations__) == set(FIELDS) - extras


def test_every_part_and_role_of_the_sdk_is_understood():
    parts = typing.get_args(typing.get_args(shapes.UserPart)[0])
    types = {
        typing.get_args(typing.get_type_hints(part, include_extras=False)["type"])[0]
        for part in parts
    }
    assert types == {"text", "image_url", "input_audio", "file"}
    assert types | {"refusal"} == set(messages.PARTS)


def test_every_reasoning_effort_of_the_sdk_is_accepted(ask):
    literal = typing.get_args(reasoning_effort.ReasoningEffort)[0]
    for effort in typing.get_args(literal):
        assert ask(reasoning_effort=effort).request.reasoning.effort == effort
