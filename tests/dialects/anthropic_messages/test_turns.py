"""How messages become turns: system text, alternation, tool results, media, sealed thinking."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import pytest

from adapters.canonical.faults import Fault
from adapters.canonical.parts import (
    FileRef,
    Inline,
    Media,
    Opaque,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Url,
)
from adapters.canonical.request import Message
from adapters.dialects.anthropic_messages.blocks import NO_OUTPUT
from adapters.dialects.anthropic_messages.turns import OPENING

CACHE = {"cache_control": {"type": "ephemeral"}}
OWN = "anthropic-messages"


def user(*parts, **more):
    return Message("user", tuple(Text(p) if isinstance(p, str) else p for p in parts), **more)


def assistant(*parts):
    return Message("assistant", tuple(Text(p) if isinstance(p, str) else p for p in parts))


def system(text, role="system", **extras):
    return Message(role, (Text(text, extras=extras),))


def call(call_id="c1", arguments="{}", **more):
    return ToolCall(call_id, "f", arguments, **more)


def result(call_id="c1", *content, **more):
    texts = tuple(Text(c) if isinstance(c, str) else c for c in content)
    return Message("tool", (ToolResult(call_id, texts, **more),))


def text(value):
    return {"type": "text", "text": value}


def shape(messages):
    """Roles and what stands in each turn, short."""
    return [(m["role"], [b.get("text", b["type"]) for b in m["content"]]) for m in messages]


def fault(send, request, facts):
    with pytest.raises(Fault) as caught:
        send(request, facts)
    return caught.value


# --------------------------------------------------------------------------- system


def test_leading_instructions_join_the_system_prompt(ask, send, modern):
    request = ask(
        system("one", **CACHE),
        system("two", role="developer"),
        user("hi"),
        instructions=(Text("zero", extras=CACHE),),
        origin="openai-responses",
    )
    sent = send(request, modern)
    assert sent.body["system"] == [{**text("zero"), **CACHE}, {**text("one"), **CACHE}, text("two")]
    assert shape(sent.messages) == [("user", ["hi"])]


def test_a_system_message_amid_the_turns_keeps_its_role_where_it_may(ask, send, modern):
    talk = (user("hi"), system("be brief"), assistant("yes"), user("more"), system("end"))
    sent = send(ask(*talk), modern)
    assert shape(sent.messages) == [
        ("user", ["hi"]),
        ("system", ["be brief"]),
        ("assistant", ["yes"]),
        ("user", ["more"]),
        ("system", ["end"]),
    ]
    assert sent.adjusted == ()


def test_it_waits_for_the_users_turn_to_be_over(ask, send, modern):
    talk = (user("a"), assistant("b"), system("s1"), system("s2"), user("c"), user("d"))
    sent = send(ask(*talk), modern)
    assert shape(sent.messages)[2:] == [("user", ["c", "d"]), ("system", ["s1", "s2"])]
    assert sent.adjusted == ("messages[2]=system message->moved behind the user's turn",)


def test_between_two_assistant_messages_it_becomes_the_users(ask, send, modern):
    sent = send(ask(user("a"), assistant("b"), system("s"), assistant("c"), user("d")), modern)
    assert shape(sent.messages)[2] == ("user", ["<system-message>\ns\n</system-message>"])
    assert sent.adjusted == ("messages[2].role=system->user",)


def test_a_model_without_that_role_reads_it_in_the_users_turn(ask, send, older):
    talk = (user("go"), assistant(call()), result("c1", "1"), system("s", **CACHE), user("on"))
    sent = send(ask(*talk), older)
    folded = "<system-message>\ns\n</system-message>"
    assert shape(sent.messages)[2] == ("user", ["tool_result", folded, "on"])
    assert sent.messages[2]["content"][1]["cache_control"] == {"type": "ephemeral"}
    assert sent.adjusted == ("messages[3].role=system->user",)


# --------------------------------------------------------------------------- alternation


def test_turns_of_one_role_become_one(ask, send, modern):
    sent = send(ask(user("a"), user("b"), assistant("c"), assistant("d"), user("e")), modern)
    assert shape(sent.messages) == [
        ("user", ["a", "b"]),
        ("assistant", ["c", "d"]),
        ("user", ["e"]),
    ]


def test_an_assistants_opening_gets_a_users_turn_before_it(ask, send, modern):
    sent = send(ask(assistant("Welcome!"), user("hi")), modern)
    assert shape(sent.messages)[0] == ("user", [OPENING])
    assert f"messages[0]={OPENING}" in sent.injected


def test_blank_assistant_messages_vanish(ask, send, modern):
    sent = send(ask(user("a"), assistant(""), assistant(), assistant(" \n"), user("b")), modern)
    assert shape(sent.messages) == [("user", ["a", "b"])]
    assert sent.adjusted == ("messages[3].content[0]=blank text->left out",)


def test_its_own_callers_white_space_stays(ask, send, modern):
    talk = (user("a"), assistant(" ", call()), result("c1", "r"))
    assert shape(send(ask(*talk, origin=OWN), modern).messages)[1] == (
        "assistant",
        [" ", "tool_use"],
    )
    assert shape(send(ask(*talk), modern).messages)[1] == ("assistant", ["tool_use"])
    assert shape(send(ask(user("", "a"), origin=OWN), modern).messages) == [("user", ["a"])]


def test_a_blank_user_message_is_refused(ask, send, modern):
    told = fault(send, ask(user("a"), user("")), modern)
    assert (told.kind, told.param) == ("bad_request", "messages[1]")


@pytest.mark.parametrize("talk", [(), (system("only"),)])
def test_an_empty_conversation_is_refused(ask, send, modern, talk):
    told = fault(send, replace(ask(), messages=talk), modern)
    assert (told.kind, told.param) == ("bad_request", "messages")


def test_prefill_needs_a_model_that_can(ask, send, modern, older):
    talk = (user("a"), assistant("The answer is ( "))
    assert fault(send, ask(*talk), modern).param == "messages[1]"
    sent = send(ask(*talk), older)
    assert sent.messages[-1]["content"] == [text("The answer is (")]
    assert sent.adjusted == ("messages[1].content=trailing white space->left out",)
    assert send(ask(*talk, origin=OWN), modern).messages[-1]["role"] == "assistant"


def test_a_paused_turn_goes_back_as_it_is(ask, send, modern):
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    talk = (user("a"), assistant("Searching.", Opaque(OWN, "server_tool_use", search)))
    sent = send(ask(*talk), modern)
    assert sent.messages[1]["content"] == [text("Searching."), search]
    told = send(ask(*talk, system("be quick")), modern)
    assert shape(told.messages)[2] == ("system", ["be quick"])


def test_names_are_dropped_by_name(ask, send, modern):
    assert send(ask(user("a", name="ann")), modern).dropped == ("messages[0].name",)


# --------------------------------------------------------------------------- tool results


def test_all_results_of_a_turn_stand_first_in_the_next(ask, send, modern):
    talk = (
        user("go"),
        assistant(call("c1"), call("c2")),
        result("c2", "B"),
        result("c1", "A"),
        user("and now?"),
    )
    sent = send(ask(*talk), modern)
    assert sent.messages[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c2", "content": [text("B")]},
        {"type": "tool_result", "tool_use_id": "c1", "content": [text("A")]},
        text("and now?"),
    ]


def test_results_come_before_text_of_the_same_message(ask, send, modern):
    mixed = user("look:", ToolResult("c1", (Text("A"),)))
    sent = send(ask(user("go"), assistant(call()), mixed, origin=OWN), modern)
    assert shape(sent.messages)[2] == ("user", ["tool_result", "look:"])


@pytest.mark.parametrize(
    ("talk", "param"),
    [
        ((user("go"), assistant(call("c1"), call("c2")), result("c1")), "messages[1]"),
        (
            (user("go"), assistant(call("c1"), call("c2")), result("c1"), user("x")),
            "messages[1]",
        ),
        ((user("go"), assistant(call()), result("c9")), "messages[2]"),
        ((user("go"), assistant(call())), "messages[1]"),
        ((user("go"), assistant(call()), result(), result()), "messages[1]"),
        (
            (user("go"), assistant(call()), result(), assistant("ok"), result()),
            "messages[3]",
        ),
    ],
)
def test_calls_and_results_that_do_not_pair_are_refused(ask, send, modern, talk, param):
    told = fault(send, ask(*talk), modern)
    assert (told.kind, told.param) == ("bad_request", param)


def test_a_continued_thread_may_answer_calls_that_are_not_here(ask, send, modern):
    request = ask(
        user(ToolResult("toolu_1", (Text("A"),))),
        origin=OWN,
        extras={"thread": {"type": "continue", "previous_message_id": "msg_1"}},
    )
    assert send(request, modern).messages[0]["content"][0]["tool_use_id"] == "toolu_1"


def test_foreign_ids_are_made_legal_and_stay_distinct(ask, send, modern):
    ids = ("functions.get:0|x", "functions.get:0/x", "a" * 80)
    talk = (user("go"), assistant(*map(call, ids)), *(result(i, "r") for i in ids))
    sent = send(ask(*talk), modern)
    used = [block["id"] for block in sent.messages[1]["content"]]
    answered = [block["tool_use_id"] for block in sent.messages[2]["content"]]
    assert used == answered
    assert len(set(used)) == 3
    assert all(len(i) <= 64 and i.replace("_", "").replace("-", "").isalnum() for i in used)


def test_an_id_used_twice_is_told_apart(ask, send, modern):
    talk = (
        user("go"),
        assistant(call("call_0")),
        result("call_0", "first"),
        assistant(call("call_0")),
        result("call_0", "second"),
    )
    sent = send(ask(*talk), modern)
    first, second = (sent.messages[n]["content"][0]["id"] for n in (1, 3))
    assert first == "call_0" != second
    assert sent.messages[4]["content"][0]["tool_use_id"] == second


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        ("", {}),
        (" ", {}),
        ("{}", {}),
        ('{"n": 12345678901234567890123}', {"n": 12345678901234567890123}),
    ],
)
def test_arguments_become_the_input(ask, send, modern, arguments, given):
    talk = (user("go"), assistant(call(arguments=arguments)), result("c1", "r"))
    body = send(ask(*talk), modern).encoded.call.body
    assert json.loads(body)["messages"][1]["content"][0]["input"] == given


@pytest.mark.parametrize("broken", ['{"a": ', "[1]", "null", "NaN", '{"a": "\\ud800"}'])
def test_arguments_that_are_no_object_stay_readable(ask, send, modern, broken):
    talk = (user("go"), assistant(call(arguments=broken)), result("c1", "bad JSON"))
    sent = send(ask(*talk), modern)
    assert sent.messages[1]["content"][0]["input"] == {"unparsed_arguments": broken}
    assert "messages[1].tool_calls[0].function.arguments" in sent.adjusted[0]


def test_free_form_input_of_a_custom_tool(ask, send, modern):
    talk = (user("go"), assistant(call(arguments="*** patch", kind="custom")), result("c1", "ok"))
    assert send(ask(*talk), modern).messages[1]["content"][0]["input"] == {"input": "*** patch"}


def test_errors_must_say_something(ask, send, modern):
    def block(*content, **more):
        sent = send(ask(user("go"), assistant(call()), result("c1", *content, **more)), modern)
        return sent, sent.messages[2]["content"][0]

    assert block("boom", is_error=True)[1]["is_error"] is True
    assert block("fine", is_error=False)[1]["is_error"] is False
    assert "is_error" not in block("fine")[1]
    assert "content" not in block()[1]
    sent, empty = block(is_error=True)
    assert empty["content"] == [text(NO_OUTPUT)]
    assert sent.injected[0] == f"messages[2].content={NO_OUTPUT}"
    sent, pictured = block(Media("image", Url("https://x/y.png")), is_error=True)
    assert "is_error" not in pictured
    assert sent.adjusted[0].startswith("messages[2].is_error")


# --------------------------------------------------------------------------- media


IMAGE = Inline("image/png", "iVBORw0KGgo=")


@pytest.mark.parametrize(
    ("media", "block"),
    [
        (
            Media("image", IMAGE),
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": IMAGE.data},
            },
        ),
        (
            Media("image", Inline("image/jpg", "AA==")),
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/jpeg", "data": "AA=="},
            },
        ),
        (
            Media("image", Url("data:image/gif;base64,AA==")),
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/gif", "data": "AA=="},
            },
        ),
        (
            Media("image", Url("https://x.example/y.png")),
            {"type": "image", "source": {"type": "url", "url": "https://x.example/y.png"}},
        ),
        (
            Media("image", FileRef("file_1"), extras=CACHE),
            {"type": "image", "source": {"type": "file", "file_id": "file_1"}, **CACHE},
        ),
        (
            Media("file", Inline("image/webp", "AA==")),
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/webp", "data": "AA=="},
            },
        ),
        (
            Media("file", Inline("application/pdf", "JVBERi0xLjQK"), filename="a.pdf"),
            {
                "type": "document",
                "source": {
                    "type": "base64",
                    "media_type": "application/pdf",
                    "data": "JVBERi0xLjQK",
                },
                "title": "a.pdf",
            },
        ),
        (
            Media("file", Inline("text/csv", base64.b64encode("a,é".encode()).decode())),
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "a,é"},
            },
        ),
        (
            Media("file", Url("https://x.example/y.pdf")),
            {"type": "document", "source": {"type": "url", "url": "https://x.example/y.pdf"}},
        ),
        (
            Media("file", FileRef("file_2")),
            {"type": "document", "source": {"type": "file", "file_id": "file_2"}},
        ),
    ],
)
def test_media(ask, send, modern, media, block):
    assert send(ask(user("see", media)), modern).messages[0]["content"][1] == block


@pytest.mark.parametrize(
    ("media", "kind"),
    [
        (Media("audio", Inline("audio/wav", "AA==")), "unsupported"),
        (Media("image", Inline("image/svg+xml", "AA==")), "unsupported"),
        (Media("file", Inline("application/zip", "AA==")), "unsupported"),
        (Media("image", Url("file:///etc/passwd")), "bad_request"),
        (Media("image", Url("data:image/png,raw")), "bad_request"),
        (Media("file", Inline("text/plain", "/w==")), "bad_request"),
        (Opaque("openai-chat", "hologram", {}), "unsupported"),
    ],
)
def test_media_that_can_not_go_is_refused_with_its_path(ask, send, modern, media, kind):
    told = fault(send, ask(user("see", media)), modern)
    assert (told.kind, told.param) == (kind, "messages[0].content[1]")


def test_paths_are_named_as_on_the_callers_wire(ask, send, modern):
    request = ask(user(Media("audio", Inline("audio/wav", ""))), origin="openai-responses")
    assert fault(send, request, modern).param == "input[0].content[0]"


def test_images_inside_tool_results(ask, send, modern):
    talk = (user("go"), assistant(call()), result("c1", "see", Media("image", IMAGE)))
    content = send(ask(*talk), modern).messages[2]["content"][0]["content"]
    assert [block["type"] for block in content] == ["text", "image"]


def test_the_detail_of_an_image_is_dropped_by_name(ask, send, modern):
    sent = send(ask(user(Media("image", IMAGE, detail="high"))), modern)
    assert sent.dropped == ("messages[0].content[0].image_url.detail",)
    assert send(ask(user(Media("image", IMAGE, detail="auto"))), modern).dropped == ()


# --------------------------------------------------------------------------- the model's parts


def test_thinking_goes_back_only_to_its_maker_and_only_if_proven(ask, send, modern):
    talk = (
        user("a"),
        assistant(
            Thinking("", signature="s1", dialect=OWN),
            Thinking("", sealed="s2", dialect=OWN),
            Thinking("unsigned", dialect=OWN),
            Thinking("foreign", sealed="x", dialect="openai-responses"),
            "b",
        ),
        user("c"),
    )
    sent = send(ask(*talk), modern)
    assert sent.messages[1]["content"] == [
        {"type": "thinking", "thinking": "", "signature": "s1"},
        {"type": "redacted_thinking", "data": "s2"},
        text("b"),
    ]
    assert sent.dropped == ("messages[1].reasoning_details",)
    names = send(ask(*talk, origin=OWN), modern).dropped
    assert names == ("messages[1].content[2]", "messages[1].content[3]")


def test_refusals_foreign_blocks_and_annotations(ask, send, modern):
    talk = (
        user("a"),
        assistant(
            Refusal("no"),
            Opaque("openai-responses", "web_search_call", {"id": "ws"}),
            Text("cited", citations=({"type": "url_citation"},)),
        ),
        user("b"),
    )
    sent = send(ask(*talk), modern)
    assert sent.messages[1]["content"] == [text("no"), text("cited")]
    assert sent.dropped == ("messages[1].content[1]", "messages[1].content[2].citations")


def test_citations_and_extras_of_its_own_callers_go_back(ask, send, modern):
    cited = Text("x", citations=({"type": "char_location"},), extras={"new": 1})
    own_call = ToolCall("c1", "f", "{}", extras={"caller": {"type": "direct"}})
    sent = send(ask(user("a"), assistant(cited, own_call), result("c1", "r"), origin=OWN), modern)
    assert sent.messages[1]["content"] == [
        {**text("x"), "citations": [{"type": "char_location"}], "new": 1},
        {"type": "tool_use", "id": "c1", "name": "f", "input": {}, "caller": {"type": "direct"}},
    ]
    foreign = send(ask(user(Text("x", extras={"new": 1, **CACHE}))), modern)
    assert foreign.messages[0]["content"] == [{**text("x"), **CACHE}]
    assert foreign.dropped == ("messages[0].content[0].new",)
