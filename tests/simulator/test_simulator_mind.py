"""What the simulated model answers: tools, arguments, schemas, limits, dirt, usage."""

import json

import jsonschema_rs
import pytest

from adapters.simulator import CATALOGUE, mind, names, seal
from adapters.simulator.answers import DIRT
from adapters.simulator.arguments import instance
from adapters.simulator.meter import PromptCache, tokens
from adapters.simulator.words import Answer, Ask, Call, Refused, Result, Say, Think, ToolSpec, Turn


def tool(name: str, **properties: object) -> ToolSpec:
    return ToolSpec(
        name, {"type": "object", "properties": properties, "required": list(properties)}
    )


WEATHER = tool("get_weather", city={"type": "string"})
ADD = tool("add", a={"type": "integer"}, b={"type": "integer"})
MAGIC = tool("magic_function", input={"type": "integer"})


def ask(prompt: str, *tools: ToolSpec, **more: object) -> Ask:
    return Ask("m", False, prompt=prompt, tools=tools, **more)  # type: ignore[arg-type]


def calls(answer: Answer) -> list[tuple[str, object]]:
    return [(p.name, json.loads(p.arguments)) for p in answer.parts if isinstance(p, Call)]


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("What is the value of magic_function(3)? Use the tool.", ("magic_function", {"input": 3})),
        (
            "What's the weather in San Francisco, CA?",
            ("get_weather", {"city": "San Francisco, CA"}),
        ),
        ("get_weather for '北京' please", ("get_weather", {"city": "北京"})),
        ("What is the weather at 你好啊集团 now", ("get_weather", {"city": "你好啊集团"})),
        ("use add on 17 and -4", ("add", {"a": 17, "b": -4})),
        ('add {"a": 5, "b": {"c": 6}} now', ("add", {"a": 5, "b": {"c": 6}})),
        (f'add {{"a": {2**70}, "b": -{2**64}}}', ("add", {"a": 2**70, "b": -(2**64)})),
        ("add with b=2, a=1", ("add", {"a": 1, "b": 2})),
    ],
)
def test_a_prompt_about_a_tool_calls_it_with_what_the_prompt_offers(prompt, expected):
    assert calls(mind.reply(ask(prompt, WEATHER, ADD, MAGIC))) == [expected]


@pytest.mark.parametrize("prompt", ["Say hello", "Please address the letter", ""])
def test_other_prompts_call_nothing(prompt):
    assert calls(mind.reply(ask(prompt, WEATHER, ADD, MAGIC))) == []


def test_forced_named_and_forbidden_tools():
    def one(choice: str) -> list[str]:
        return [
            name for name, _ in calls(mind.reply(ask("Say hello", WEATHER, ADD, choice=choice)))
        ]

    assert one("required") == ["get_weather"]
    assert one("=add") == ["add"]
    assert one("none") == []
    assert calls(mind.reply(ask("add 1 and 2", ADD, choice="none"))) == []


def test_tools_are_called_together_or_one_after_the_other():
    prompt = "First add 1 and 2, then get_weather for Rome."
    both = calls(mind.reply(ask(prompt, WEATHER, ADD)))
    assert [name for name, _ in both] == ["add", "get_weather"]
    first = calls(mind.reply(ask(prompt, WEATHER, ADD, parallel=False)))
    assert [name for name, _ in first] == ["add"]
    result = Result("c1", "add", "3")
    second = ask(prompt, WEATHER, ADD, parallel=False, results=(result,), called=("add",))
    assert [name for name, _ in calls(mind.reply(second))] == ["get_weather"]
    last = ask(prompt, WEATHER, ADD, results=(result,), called=("add", "get_weather"))
    assert mind.reply(last).text == "The tool add says: 3"


SCHEMAS: list[dict[str, object]] = [
    {"type": "object", "properties": {"a": {"type": "integer", "minimum": 5, "maximum": 9}}},
    {"type": "object", "properties": {"a": {"type": "number", "exclusiveMinimum": 0}}},
    {"type": "object", "properties": {"a": {"type": "integer", "multipleOf": 7}}},
    {"type": "object", "properties": {"a": {"enum": ["red", "blue"]}, "b": {"const": 4}}},
    {"type": "object", "properties": {"a": {"type": ["null", "string"], "maxLength": 3}}},
    {"type": "object", "properties": {"a": {"type": "string", "minLength": 200}}},
    {"type": "object", "properties": {"a": {"type": "string", "format": "date-time"}}},
    {"type": "object", "properties": {"a": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]+$"}}},
    {"type": "array", "items": {"type": "boolean"}, "minItems": 2},
    {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
    {"anyOf": [{"type": "null"}, {"type": "object", "required": ["x"]}]},
    {"allOf": [{"type": "object", "required": ["x"]}, {"properties": {"x": {"type": "null"}}}]},
    {
        "$defs": {"node": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "kids": {
                "type": "array", "items": {"$ref": "#/$defs/node"},
            }},
            "required": ["name", "kids"],
            "additionalProperties": False,
        }},
        "$ref": "#/$defs/node",
    },
]  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
@pytest.mark.parametrize("prompt", ["", "12 and 'x y' of 北京 in Rome", "a=6, name: Bob, blue"])
def test_instances_fit_their_schema(schema, prompt):
    made = instance(schema, prompt)
    validator = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
    assert validator.is_valid(made), made
    assert instance(schema, prompt) == made


def test_json_is_answered_where_json_is_asked():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    assert json.loads(mind.reply(ask("take 7", schema=schema)).text) == {"n": 7}
    assert json.loads(mind.reply(ask("hi", json_object=True)).text) == {"echo": "hi"}
    keys = "JSON with 'setup' and 'punchline' keys"
    assert set(json.loads(mind.reply(ask(keys, json_object=True)).text)) == {"setup", "punchline"}


@pytest.mark.parametrize("json_object", [True, False])
def test_a_schema_in_the_instructions_is_followed(json_object):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    words = (
        f"Answer in JSON {{like this}} that fits this schema:\n{json.dumps(schema, indent=1)}\n!"
    )
    told = ask("take 7", turns=(Turn("system", words),), json_object=json_object)
    assert json.loads(mind.reply(told).text) == {"n": 7}
    assert json.loads(mind.reply(ask(f"take 7. {words}", json_object=json_object)).text) == {"n": 7}


def test_limits_and_stops():
    answer = Answer((Think("x" * 8), Say("北京" * 20)))
    cut = mind.bounded(answer, ask("", limit=4))
    assert cut.ending == "length"
    assert cut.parts == (Think("x" * 8), Say("北京"))
    assert sum(tokens(part.text) for part in cut.parts) <= 4
    stopped = mind.bounded(Answer((Say("a STOP b END"),)), ask("", stops=("END", "STOP")))
    assert (stopped.text, stopped.ending, stopped.sequence) == ("a ", "sequence", "STOP")
    assert mind.bounded(answer, ask("")) is answer


def test_the_cache_reads_what_it_wrote():
    cache = PromptCache(keep=2)
    marked = ask("", tokens=100, cached=(("a", 40, 300), ("ab", 70, 3600)))
    assert cache.look(marked) == (0, 70, 30)
    assert cache.look(marked) == (70, 0, 0)
    assert cache.look(ask("", cached=(("a", 40, 300), ("ac", 90, 300)))) == (40, 50, 0)
    assert cache.look(marked) == (40, 30, 30), "the oldest is forgotten"
    assert PromptCache().look(ask("", cached=(("key", 50, 0),))) == (0, 0, 0)


def test_seals():
    assert seal.signed("thought", seal.sign("thought"))
    assert not seal.signed("thoughts", seal.sign("thought"))
    assert not seal.signed("thought", None)
    assert seal.unseal(seal.seal("北京 thought")) == "北京 thought"
    blob = seal.seal("thought")
    for wrong in (blob[:-4], blob + "x", " " + blob, "A" + blob[1:], blob.swapcase(), "", None, 7):
        assert seal.unseal(wrong) is None, wrong


@pytest.mark.parametrize("dirt", DIRT)
def test_every_dirt_breaks_the_json_or_what_it_means(dirt):
    clean = '{"a": "it is", "b": [1, true], "c": null}'
    spoiled = DIRT[dirt][1](clean)
    try:
        value = json.loads(spoiled)
    except ValueError:
        return
    assert dirt == "nan", value


def test_names_are_read_word_by_word():
    read = names.Names().read
    found = read("claude-sonnet-4-6+reasoning+fault-cut-after-3+say-a-b")
    assert [word.entry.name for word in found["spoil"]] == ["fault-cut-after-N"]
    assert found["spoil"][0].args == {"N": "3"}
    assert found["answer"][0].args == {"TEXT": "a-b"}
    assert [word.entry.name for word in found["change"]] == ["reasoning"]
    assert read("gpt-5.2") == {}
    with pytest.raises(Refused):
        read("gpt-5.2+fault-cut-after-x")


def test_calls_are_counted_by_name_and_forgotten_in_time():
    few = names.Names(keep=1)
    assert "error" in few.read("fault-once-500")
    assert "error" not in few.read("fault-once-500")
    few.read("other")
    assert "error" in few.read("fault-once-500")


def test_the_catalogue_is_sound():
    listed = [entry.name for entry in CATALOGUE]
    assert len(set(listed)) == len(listed)
    assert all(entry.meaning and entry.meaning[0] != " " for entry in CATALOGUE)
    assert all(len(entry.meaning) < 80 for entry in CATALOGUE)
