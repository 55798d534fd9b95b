"""Every text of a request is looked at; what is no text of a person's is left alone."""

from __future__ import annotations

import base64
import json
from dataclasses import fields, replace
from typing import Any

import pytest

from adapters.canonical.parts import (
    Inline,
    Media,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Url,
)
from adapters.canonical.request import (
    Cache,
    FunctionTool,
    JsonSchema,
    Message,
    OpaqueTool,
    PromptRef,
    Request,
    Sampling,
)
from gateway.policy.redaction.masking import Masking
from gateway.policy.redaction.request import masked, masked_again
from gateway.policy.redaction.scan import Scanner

MAIL = "bob@acme.com"
SCANNER = Scanner()


def request(*parts: Part, **more: Any) -> Request:
    return Request(
        model="m", origin="openai-chat", messages=(Message("user", parts),) if parts else (), **more
    )


def after(given: Request) -> Request:
    return masked(Masking(SCANNER, reversible=True), given)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


PARTS: list[Part] = [
    Text(f"to {MAIL}"),
    Text("x", citations=({"cited_text": MAIL},)),
    Text("x", extras={"note": [MAIL]}),
    Refusal(f"not {MAIL}"),
    Thinking(f"it is {MAIL}"),
    Thinking(MAIL, summary=(MAIL,)),
    ToolCall("c", "f", json.dumps({"to": MAIL})),
    ToolCall("c", "f", f"to {MAIL}", kind="custom"),
    ToolResult("c", (Text(f"sent to {MAIL}"),)),
    ToolResult("c", (Text('{"to": "bob\\u0040acme.com"}'),)),
    Opaque("openai-chat", "search", {"query": {"to": MAIL}}),
    Opaque("anthropic-messages", "document", {"source": {"type": "text", "data": MAIL}}),
    Media("file", Inline("text/plain", encoded(MAIL)), filename="a.txt"),
    Media("file", Inline("application/pdf", "AAAA"), filename=f"{MAIL} offer.pdf"),
]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_every_part(part: Part) -> None:
    (message,) = after(request(part)).messages
    shown = repr(message)
    assert "acme" not in shown
    assert encoded(MAIL) not in shown
    assert "<EMAIL_1>" in shown or encoded("<EMAIL_1>") in shown


FIELDS: dict[str, Any] = {
    "instructions": (Text(MAIL),),
    "messages": (Message("user", (Text("hi"),), name=MAIL),),
    "tools": (
        FunctionTool("f", MAIL, {"type": "object", "description": f"for {MAIL}"}),
        OpaqueTool("openai-responses", "mcp", {"server_description": MAIL}),
    ),
    "output": JsonSchema("o", {"type": "object", "title": MAIL}, description=MAIL),
    "sampling": Sampling(stop=(MAIL,)),
    "cache": Cache(key=MAIL),
    "prompt": PromptRef("pmpt_1", variables={"to": MAIL}),
    "metadata": {"who": MAIL},
    "end_user": MAIL,
    "safety_identifier": MAIL,
    "extras": {"prediction": {"content": MAIL}, MAIL: 1},
}
WITHOUT_TEXT = {
    *("model", "origin", "tool_choice", "parallel_tools", "reasoning", "service_tier"),
    *("verbosity", "store", "stream", "headers", "continues", "truncate"),
}


@pytest.mark.parametrize("name", [field.name for field in fields(Request)])
def test_every_field_of_a_request(name: str) -> None:
    """A new field has to be put in one of the two tables."""
    if name in WITHOUT_TEXT:
        return
    new = getattr(after(replace(request(), **{name: FIELDS[name]})), name)
    assert "acme" not in repr(new)
    assert "<EMAIL_1>" in repr(new)


def test_what_holds_nothing_is_the_same_object() -> None:
    given = request(Text("hi"), ToolCall("c", "f", '{ "a" : 1 }'), metadata={"a": ["b"]})
    assert after(given) is given


def test_contracts_seals_and_addresses_are_left_alone() -> None:
    schema = {"type": "object", "properties": {"to": {"enum": [MAIL]}}}
    sealed = {"encrypted_content": MAIL, "signature": MAIL}
    given = request(
        Text(MAIL),
        Thinking("", signature=MAIL, sealed=MAIL),
        Opaque("anthropic-messages", "x", sealed),
        Media("image", Url(f"https://x.example/?to={MAIL}")),
        output=JsonSchema("o", schema),
        tools=(OpaqueTool("openai-responses", "mcp", {"authorization": MAIL}),),
    )
    new = after(given)
    assert new.messages[0].parts[0] == Text("<EMAIL_1>")
    assert new.messages[0].parts[1:] == given.messages[0].parts[1:]
    assert (new.output, new.tools) == (given.output, given.tools)


def test_reasoning_keeps_the_placeholders_that_it_came_with() -> None:
    """Sealed reasoning that the gateway kept for a client is proved by its maker: not a byte may
    change, though the caller's own text in that form is masked."""
    new = after(request(Text(f"<EMAIL_1> {MAIL}"), Thinking("<EMAIL_1>", signature="s")))
    assert new.messages[0].parts == (Text("<TEXT_1> <EMAIL_1>"), Thinking("<EMAIL_1>", "s"))


def test_a_restored_conversation_is_masked_to_the_same_bytes() -> None:
    """The next turn brings the originals back; what the provider signed must look the same."""
    first = after(request(Text(f"ask {MAIL} and amy@b.org")))
    turn = Message("assistant", (Thinking(f"{MAIL}, then amy@b.org", signature="s"),))
    second = request(Text(f"ask {MAIL} and amy@b.org"))
    second = after(replace(second, messages=(*second.messages, turn)))
    assert second.messages[0] == first.messages[0]
    assert second.messages[1].parts == (Thinking("<EMAIL_1>, then <EMAIL_2>", "s"),)


OWN = "perhaps info@example.com"


@pytest.mark.parametrize("reversible", [True, False])
def test_signed_reasoning_with_a_value_of_the_model_s_own_loses_its_seal(reversible: bool) -> None:
    """The model wrote it unmasked, so that masked it is no longer what was signed."""
    turn = Message("assistant", (Thinking(OWN, "s", extras={"note": MAIL}), Text(MAIL)))
    given = replace(request(Text("ask")), messages=(Message("user", (Text("ask"),)), turn))
    thought, said = masked(Masking(SCANNER, reversible=reversible), given).messages[1].parts
    assert thought == Thinking("perhaps <EMAIL_1>", dialect=None, extras={"note": "<EMAIL_2>"})
    assert said == Text("<EMAIL_2>")


def test_a_re_ask_says_signed_reasoning_as_it_was_signed() -> None:
    masking = Masking(SCANNER, reversible=True)
    first = masked(masking, request(Text(f"ask {MAIL}")))
    answer = Message("assistant", (Thinking(f"{OWN}, {MAIL}", signature="s"),))
    again = masked_again(masking, replace(first, messages=(*first.messages, answer)), 1)
    assert again.messages[1].parts == (Thinking(f"{OWN}, <EMAIL_1>", "s"),)


def test_only_new_messages_are_masked_again() -> None:
    masking = Masking(SCANNER, reversible=True)
    first = masked(masking, request(Text(f"call 5551234567, mail {MAIL}")))
    answer = Message("assistant", (Text('{"phone": "5551234567"}'),))
    asked = replace(first, messages=(*first.messages, answer))
    again = masked_again(masking, asked, 1)
    assert again.messages[0] is first.messages[0]
    assert again.messages[1].parts == (Text('{"phone": "<PHONE_1>"}'),)
