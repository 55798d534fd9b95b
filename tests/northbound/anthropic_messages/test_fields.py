"""Every field of the vendor's own request types has a row, and every row has its shape."""

import typing

from anthropic.types import message_count_tokens_params, message_create_params
from anthropic.types.beta import message_create_params as beta_params

from gateway.northbound.anthropic_messages import shapes
from gateway.northbound.anthropic_messages.fields import FIELDS

OLDER = {"temperature", "top_k", "top_p", "output_format"}
"""Fields that older clients send and the SDK no longer lists."""


def sdk_fields() -> set[str]:
    return {
        name
        for module in (message_create_params, beta_params)
        for shape in (module.MessageCreateParamsBase, module.MessageCreateParamsStreaming)
        for name in typing.get_type_hints(shape)
    }


def test_every_field_of_the_sdk_has_a_row_and_no_row_is_stale():
    assert set(FIELDS) == sdk_fields() | OLDER


def test_mapped_fields_are_checked_and_the_rest_become_extras():
    elsewhere = {name for name, field in FIELDS.items() if field.to in ("extras", "headers", None)}
    assert set(typing.get_type_hints(shapes.Body)) == set(FIELDS) - elsewhere


def test_counting_takes_the_same_request():
    headers = {"user_profile_id", "workspace_id"}
    fields = set(typing.get_type_hints(message_count_tokens_params.MessageCountTokensParams))
    unknown = fields - set(typing.get_type_hints(shapes.Counted)) - headers
    assert all(FIELDS[name].to == "extras" for name in unknown), unknown
