"""Prompts: their files, their versions and labels, and what they make of a request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adapters.canonical.faults import Fault
from adapters.canonical.parts import Text
from adapters.canonical.request import JsonObject, JsonSchema, Message, PromptRef, Request
from gateway.policy.inject import Fence
from gateway.policy.prompts.apply import applied
from gateway.policy.prompts.book import Book
from gateway.policy.prompts.definition import Prompt, PromptRefused, prompt_of
from gateway.policy.prompts.frontmatter import read_folder, read_text
from gateway.policy.prompts.rendering import Limits

SUPPORT = """\
+++
description = "First answers to customers"
labels = ["production"]
model = "smart"
fenced = ["variables"]

[variables]
customer = "string"
tier = { type = "string", enum = ["free", "pro"], default = "free" }

[[examples]]
user = "My invoice is wrong."
assistant = "I am sorry. Which one?"

[output]
name = "ticket"
schema = { type = "object" }
+++
You help {{ customer }} ({{ tier }}).

<!-- user -->
Answer now.
"""


def support(**changes: Any) -> Prompt:
    definition = dict(read_text("support", 3, SUPPORT, "support@3.md").prompt.definition)
    return prompt_of("support", 3, definition | changes)


def request(*messages: Message, variables: dict[str, Any] | None = None, **more: Any) -> Request:
    ref = PromptRef("support", None, {} if variables is None else variables)
    return Request(model="m", messages=messages, origin="openai-responses", prompt=ref, **more)


def said(role: Any, text: str) -> Message:
    return Message(role, (Text(text),))


# ------------------------------------------------------------------ files


def test_a_file_holds_everything() -> None:
    filed = read_text("support", 3, SUPPORT, "support@3.md")
    prompt = filed.prompt
    assert (prompt.reference, filed.labels, prompt.source) == ("support@3", ("production",), "file")
    assert prompt.definition["system"] == "You help {{ customer }} ({{ tier }})."
    assert prompt.definition["user"] == "Answer now."
    assert prompt.model == "smart"
    assert prompt.output == JsonSchema("ticket", {"type": "object"})
    assert prompt.fenced == {"variables"}
    assert len(prompt.hash) == 64


def test_the_hash_is_the_content_s() -> None:
    assert support().hash == support().hash
    assert support(user="Answer later.").hash != support().hash
    assert prompt_of("other", 9, support().definition).hash == support().hash


def test_a_file_without_front_matter_is_a_system_text() -> None:
    prompt = read_text("plain", 1, "You are kind.\n", "plain.md").prompt
    assert prompt.definition == {"system": "You are kind."}
    assert prompt.user is None


BAD = {
    "+++\nlabels = [\n+++\nx": "no valid TOML",
    "+++\nlabels = ['3']\n+++\nx": "'3' is taken",
    "+++\nlabels = ['latest']\n+++\nx": "'latest' is taken",
    "+++\nlabels = 'x'\n+++\nx": "list of texts",
    "+++\nsystem = 'x'\n+++\nx": "behind the front matter",
    "+++\nlabel = ['x']\n+++\nx": "label: is no known key",
    "+++\nvariable = {}\n+++\nx": "did you mean 'variables'",
    "+++\nvariables = { a = 'text' }\n+++\nx": "must be one of string",
    "+++\nvariables = { _a = 'string' }\n+++\nx": "must be a letter",
    "+++\nvariables = { a = { default = 1 } }\n+++\nx": "is not a string",
    "+++\nvariables = { a = { type = 'integer', enum = ['x'] } }\n+++\nx": "values of the type",
    "+++\nvariables = { a = { enum = [] } }\n+++\nx": "at least one value",
    "+++\nvariables = { a = { default = 2024-01-01 } }\n+++\nx": "is not a string",
    "+++\noutput = { schema = { const = 2024-01-01 } }\n+++\nx": "JSON does not have",
    "+++\noutput = { name = 'x' }\n+++\nx": "output.schema: is missing",
    "+++\nexamples = [{ user = 'x' }]\n+++\nx": "examples[0].assistant",
    "+++\nfenced = ['history']\n+++\nx": "fenced[0]",
    "Hello {{ customer }}": "'customer', which is not defined",
    "Hello {{ x.__class__ }}": "can't be used here",
    "": "says nothing",
}


@pytest.mark.parametrize(("text", "why"), BAD.items())
def test_what_is_wrong_is_told(text: str, why: str) -> None:
    with pytest.raises(PromptRefused) as refused:
        read_text("p", 1, text, "p.md")
    assert why in str(refused.value)


def test_a_folder_tells_all_problems_at_once(tmp_path: Path) -> None:
    files = {
        "a@1.md": "+++\nlabels = ['x']\n+++\nok",
        "a@2.md": "+++\nlabels = ['x']\n+++\nok",
        "b.md": "ok",
        "b@1.md": "ok",
        "c@zero.md": "ok",
        "-d.md": "ok",
        "e.md": "{{ x }}",
        "readme.txt": "not one",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "f.md").write_bytes(b"\xff\xfe")
    found, problems = read_folder(tmp_path)
    assert [one.prompt.reference for one in found] == ["a@1", "a@2", "b@1", "b@1"]
    assert [Path(str(problem.file)).name for problem in problems] == [
        *("-d.md", "c@zero.md", "e.md", "f.md", "a@2.md", "b@1.md"),
    ]


def test_shipped_examples_are_sound() -> None:
    found, problems = read_folder(Path(__file__).parents[2] / "config" / "prompts")
    assert problems == []
    assert found


# ------------------------------------------------------------------ the index


def book() -> Book:
    shelf = Book()
    shelf.use_files([read_text("filed", 1, "file", "filed.md")])
    stored = [prompt_of("support", n, {"system": str(n)}) for n in (1, 2, 10)]
    clash = prompt_of("filed", 7, {"system": "store"})
    shelf.use_stored([*stored, clash], [("support", "production", 2), ("support", "gone", 99)])
    return shelf


@pytest.mark.parametrize(
    ("name", "version", "found"),
    [
        ("support", None, 2),
        ("support", "10", 10),
        ("support@1", None, 1),
        ("support@1", "1", 1),
        ("support@latest", None, 10),
        ("support", "production", 2),
        ("filed", None, 1),
    ],
)
def test_versions_and_labels(name: str, version: str | None, found: int) -> None:
    assert book().find(name, version).version == found


HOSTILE = [
    "../../etc/passwd",
    "..",
    "/etc/passwd",
    "a\x00.txt",
    "a/b",
    "",
    "%2e%2e",
    ".hidden",
    "a" * 65,
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_keys_and_never_paths(name: str) -> None:
    for given in (name, f"support@{name}"):
        with pytest.raises(Fault) as fault:
            book().find(given, None)
        assert fault.value.kind == "bad_request"


def test_unknown_names_and_versions_are_not_found() -> None:
    for name, version, hint in (
        ("suport", None, "'support'"),
        ("support", "3", "1, 2, 10, production, latest"),
        ("support", "gone", "no such"),
        ("filed", "7", "no such"),
    ):
        with pytest.raises(Fault, match=hint) as fault:
            book().find(name, version)
        assert fault.value.kind == "not_found"
    with pytest.raises(Fault, match="two versions"):
        book().find("support@1", "2")


# ------------------------------------------------------------------ the request


def test_system_examples_history_user() -> None:
    given = request(
        said("system", "Be brief."),
        said("user", "Hello"),
        said("assistant", "Hi"),
        variables={"customer": "{{ 7*7 }}"},
        instructions=(Text("Mine."),),
    )
    new = applied(support(), given, Limits())
    assert [part.text for part in new.instructions] == ["You help {{ 7*7 }} (free).", "Mine."]
    assert [(m.role, m.parts[0].text) for m in new.messages] == [  # type: ignore[union-attr]
        ("system", "Be brief."),
        ("user", "My invoice is wrong."),
        ("assistant", "I am sorry. Which one?"),
        ("user", "Hello"),
        ("assistant", "Hi"),
        ("user", "Answer now."),
    ]
    assert new.output == JsonSchema("ticket", {"type": "object"})
    assert new.prompt is None


def test_what_the_request_says_is_over_the_prompt_s() -> None:
    new = applied(support(), request(variables={"customer": "x"}, output=JsonObject()), Limits())
    assert new.output == JsonObject()


def test_without_a_user_template_the_variables_are_sent_as_json() -> None:
    prompt = prompt_of("p", 1, {"system": "s", "variables": {"a": "string", "b": "integer"}})
    new = applied(prompt, request(said("user", "hi"), variables={"b": 2, "a": "é"}), Limits())
    assert new.messages[-1] == said("user", '{"a":"é","b":2}')
    blank = prompt_of("p", 1, {**prompt.definition, "user": ""})
    new = applied(blank, request(said("user", "hi"), variables={"b": 2, "a": "é"}), Limits())
    assert new.messages == (said("user", "hi"),)


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({}, "customer", "needs the variable 'customer'"),
    ({"customer": 1}, "customer", "takes a string as 'customer'"),
    ({"customer": None}, "customer", "takes a string"),
    ({"customer": "x", "tier": "gold"}, "tier", "out of 'free', 'pro'"),
    ({"customer": "x", "teir": "pro"}, "teir", "Did you mean 'tier'"),
    ({"customer": "x", "a b\n": 1}, "variables", "no such variable"),
]


@pytest.mark.parametrize(("variables", "param", "why"), WRONG)
def test_variables_that_do_not_fit(variables: dict[str, Any], param: str, why: str) -> None:
    with pytest.raises(Fault) as fault:
        applied(support(), request(variables=variables), Limits())
    assert fault.value.kind == "bad_request"
    assert fault.value.param == f"prompt.variables.{param}"
    assert why in fault.value.message


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("string", "", 0),
        ("number", 1.5, True),
        ("integer", 0, 1.0),
        ("boolean", False, 0),
        ("array", [], {}),
        ("object", {}, []),
    ],
)
def test_types_are_json_s(kind: str, good: Any, bad: Any) -> None:
    prompt = prompt_of("p", 1, {"system": "s", "variables": {"x": kind}})
    new = applied(prompt, request(variables={"x": good}), Limits())
    assert json.loads(new.messages[-1].parts[0].text) == {"x": good}  # type: ignore[union-attr]
    with pytest.raises(Fault):
        applied(prompt, request(variables={"x": bad}), Limits())


def test_a_text_may_come_as_the_responses_api_s_object() -> None:
    variables = {"customer": {"type": "input_text", "text": "Ann"}}
    new = applied(support(), request(variables=variables), Limits())
    assert new.instructions[0].text == "You help Ann (free)."


def test_a_rendering_that_fails_is_the_caller_s_fault() -> None:
    prompt = prompt_of("p", 1, {"system": "{{ x.a }}", "variables": {"x": "object"}})
    with pytest.raises(Fault, match="p@1 can't be made") as fault:
        applied(prompt, request(variables={"x": {}}), Limits())
    assert fault.value.code == "prompt_not_rendered"


def test_variables_are_fenced() -> None:
    fence = Fence("mark")
    new = applied(support(), request(variables={"customer": "Ann", "tier": "pro"}), Limits(), fence)
    assert new.instructions[0].text == "You help <mark>Ann</mark> (<mark>pro</mark>)."
    data = prompt_of("p", 1, {"system": "s", "variables": {"a": "string"}})
    new = applied(data, request(variables={"a": "x"}), Limits(), fence)
    assert new.messages[-1] == said("user", '<mark>{"a":"x"}</mark>')
